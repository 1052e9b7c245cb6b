//! Reads the channels of a client.

use crate::channels::{CLOSE, Channels, RESIZE, STDIN};
use bytes::Bytes;
use pintle_websocket::{CloseCode, Event, ReadError, Reader};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};

/// The number of channels.
const CHANNELS: u8 = 5;

/// The channels for the input of a client. Dropping a sender ends the channel.
#[derive(Debug)]
pub(crate) struct ClientInput {
    pub(crate) stdin: Option<mpsc::Sender<Bytes>>,
    pub(crate) resize: Option<mpsc::Sender<Bytes>>,
}

/// The channel of the message that is being read.
#[derive(Clone, Copy, Debug)]
enum Target {
    Unknown,
    Data(u8),
    /// A request to end a channel, with the bytes of it.
    Close(Option<u8>),
    Malformed,
}

impl ClientInput {
    /// Reads until the client leaves, breaks the protocol or is idle for too long. It returns how the connection ends.
    pub(crate) async fn read<R, W>(mut self, mut reader: Reader<R>, channels: &Channels<W>) -> CloseCode
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let mut target = Target::Unknown;
        loop {
            let event = tokio::select! {
                event = reader.next() => event,
                () = channels.activity().idle() => return CloseCode::NORMAL,
            };
            channels.activity().note();
            match event {
                Ok(Some(Event::Piece { is_first, is_last, bytes, .. })) => {
                    if is_first {
                        target = Target::Unknown;
                    }
                    target = tokio::select! {
                        target = self.receive(target, bytes) => target,
                        // The command may never read its input.
                        () = channels.activity().idle() => return CloseCode::NORMAL,
                    };
                    if is_last && self.has_ended(target).is_err() {
                        return CloseCode::NORMAL;
                    }
                }
                Ok(Some(Event::Ping(bytes))) => {
                    if channels.pong(&bytes).await.is_err() {
                        return CloseCode::NORMAL;
                    }
                }
                Ok(Some(Event::Pong)) => {}
                Ok(Some(Event::Close(_)) | None) => return CloseCode::NORMAL,
                Err(ReadError::Io(_) | ReadError::TooLarge(_)) => return CloseCode::NORMAL,
                Err(_) => return CloseCode::PROTOCOL_ERROR,
            }
        }
    }

    /// Hands on a piece of a message. It waits for the node to take it.
    async fn receive(&mut self, target: Target, mut bytes: Bytes) -> Target {
        let target = match (target, bytes.first()) {
            (target, None) => return target,
            (Target::Unknown, Some(&CLOSE)) => {
                bytes = bytes.slice(1..);
                Target::Close(None)
            }
            (Target::Unknown, Some(&channel)) => {
                bytes = bytes.slice(1..);
                Target::Data(channel)
            }
            (target, Some(_)) => target,
        };
        match (target, &*bytes) {
            (_, []) => target,
            (Target::Close(None), [channel]) => Target::Close(Some(*channel)),
            (Target::Close(_) | Target::Malformed, _) => Target::Malformed,
            (Target::Data(channel), _) => {
                let sender = match channel {
                    STDIN => self.stdin.as_ref(),
                    RESIZE => self.resize.as_ref(),
                    // Nobody reads the other channels.
                    _ => None,
                };
                if let Some(sender) = sender {
                    sender.send(bytes).await.ok();
                }
                target
            }
            (Target::Unknown, _) => target,
        }
    }

    /// The end of a message.
    ///
    /// # Errors
    /// When it was a malformed request to end a channel, which ends the connection.
    fn has_ended(&mut self, target: Target) -> Result<(), ()> {
        match target {
            Target::Close(Some(STDIN)) => self.stdin = None,
            Target::Close(Some(RESIZE)) => self.resize = None,
            Target::Close(Some(channel)) if channel < CHANNELS => {}
            Target::Close(_) | Target::Malformed => return Err(()),
            Target::Unknown | Target::Data(_) => {}
        }
        Ok(())
    }
}
