//! Sends responses of frames over upgraded connections, and reads the client's frames there.
//!
//! The client is not supposed to say anything: its data is skipped as it arrives. A ping is answered before the next
//! one is read, so that a client that does not read cannot make the server keep answers. The response ends as every
//! other: it is cut off when the client does not read, and holds the server's stop up until it has ended.

use super::sent_body::SentBody;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use pintle_websocket::{CloseCode, Event, Opcode, ReadError, Reader, Role, put_frame};
use std::{io, pin::pin, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split},
    sync::mpsc,
    time::timeout,
};

/// How long the client may take to close the connection after a close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The answer to a frame of the client.
enum Reply {
    Pong(Bytes),
    /// The last frame.
    Close(CloseCode),
}

/// Sends frames until they end or the client closes the connection.
pub(super) async fn serve(connection: impl AsyncRead + AsyncWrite, frames: SentBody) {
    let (from_client, to_client) = split(connection);
    let (sender, replies) = mpsc::channel(1);
    let mut sent = pin!(send(to_client, frames, replies));
    let mut received = pin!(receive(from_client, sender));
    let (sent, rest) = tokio::select! {
        sent = &mut sent => (sent, None),
        rest = &mut received => match rest {
            Some(rest) => (sent.await, Some(rest)),
            None => return,
        },
    };
    if let Err(error) = sent {
        tracing::debug!(%error, "a WebSocket connection broke");
        return;
    }
    // A connection that is closed with unread bytes is reset, and the client might miss the close frame.
    let discarded = async {
        let rest = match rest {
            None => received.await,
            rest => rest,
        };
        let mut buffer = [0; 256];
        if let Some(mut rest) = rest {
            while rest.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
        }
    };
    // A client that goes on has had its time.
    let _ = timeout(CLOSE_TIMEOUT, discarded).await;
}

/// Sends the frames and the replies, and a close frame at the end.
async fn send(
    mut to_client: impl AsyncWrite + Unpin,
    mut frames: SentBody,
    mut replies: mpsc::Receiver<Reply>,
) -> io::Result<()> {
    let code = loop {
        let frame = tokio::select! {
            Some(reply) = replies.recv() => match reply {
                Reply::Close(code) => break code,
                Reply::Pong(payload) => frame(Opcode::Pong, &payload),
            },
            frame = frames.frame() => match frame {
                None => break CloseCode::NORMAL,
                Some(Err(error)) => return Err(io::Error::other(error)),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            },
        };
        to_client.write_all(&frame).await?;
        to_client.flush().await?;
    };
    // The handler's work ends before the client may take its time.
    drop(frames);
    to_client.write_all(&frame(Opcode::Close, &code.0.to_be_bytes())).await?;
    to_client.shutdown().await
}

fn frame(opcode: Opcode, payload: &[u8]) -> Bytes {
    let mut frame = BytesMut::new();
    put_frame(&mut frame, opcode, payload);
    frame.freeze()
}

/// Reads the client's frames up to the last one, and returns the connection; `None` when it broke.
async fn receive<R: AsyncRead + Unpin>(from_client: R, replies: mpsc::Sender<Reply>) -> Option<R> {
    let mut from_client = Reader::new(from_client, Role::Server);
    loop {
        let reply = match from_client.next().await {
            Ok(Some(Event::Piece { .. } | Event::Pong)) => continue,
            Ok(Some(Event::Ping(payload))) => Reply::Pong(payload),
            Ok(Some(Event::Close(_)) | None) => Reply::Close(CloseCode::NORMAL),
            Err(ReadError::Io(_)) => return None,
            Err(_) => Reply::Close(CloseCode::PROTOCOL_ERROR),
        };
        let is_last = matches!(reply, Reply::Close(_));
        // After the server's last frame there are no replies.
        let _ = replies.send(reply).await;
        if is_last {
            return Some(from_client.into_inner());
        }
    }
}

#[cfg(test)]
mod tests;
