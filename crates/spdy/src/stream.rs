//! A stream of a session.

use crate::{
    Headers,
    shared::Shared,
    streams::{Incoming, Piece, StreamEnd},
};
use bytes::Bytes;
use std::{
    io,
    sync::{Arc, OnceLock},
};
use tokio::sync::mpsc;

/// The most bytes of a data frame that this side sends.
const MAX_DATA_BYTES: usize = 32 << 10;

/// The reason why a stream has no more data, and the peer did not say that it had sent all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The peer has reset the stream.
    #[error("the stream was reset")]
    Reset,
    /// The session has ended.
    #[error("the session has ended")]
    SessionEnded,
}

/// A stream of a session: two directions, which end one by one.
///
/// When both halves are dropped before both directions have ended, the stream is reset. Peers of Kubernetes may lose what
/// they have not read of a stream that is reset, even when this side had ended its direction before.
#[derive(Debug)]
pub struct Stream {
    reader: StreamReader,
    writer: StreamWriter,
    headers: Headers,
}

/// The peer's direction of a stream.
#[derive(Debug)]
pub struct StreamReader {
    data: mpsc::Receiver<Piece>,
    end: Arc<OnceLock<StreamEnd>>,
    _handle: Arc<Handle>,
}

/// This side's direction of a stream.
#[derive(Debug)]
pub struct StreamWriter {
    handle: Arc<Handle>,
}

/// Resets the stream when its last part is dropped.
#[derive(Debug)]
struct Handle {
    stream: u32,
    shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.abandon(self.stream);
    }
}

impl Stream {
    pub(crate) fn new(stream: u32, headers: Headers, incoming: Incoming, shared: &Arc<Shared>) -> Stream {
        let handle = Arc::new(Handle { stream, shared: shared.clone() });
        let reader = StreamReader { data: incoming.data, end: incoming.end, _handle: handle.clone() };
        Stream { reader, writer: StreamWriter { handle }, headers }
    }

    /// The headers with which the peer opened the stream; none for a stream that this side opened.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// The number of the stream.
    pub fn id(&self) -> u32 {
        self.writer.handle.stream
    }

    /// Accepts a stream that the peer has opened. It sends nothing before that.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn accept(&self) -> io::Result<()> {
        self.writer.handle.shared.write(|writer| writer.put_reply(self.id())).await
    }

    /// Separates both directions.
    pub fn split(self) -> (StreamReader, StreamWriter) {
        (self.reader, self.writer)
    }
}

impl StreamReader {
    /// The next piece of data, at most 32 KiB; `None` when the peer has ended its direction. Data that are not asked for
    /// stop the session from reading, once a few pieces wait. A dropped reader discards them.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// When the stream was reset or the session ended, and all data that came before were returned.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ReadError> {
        match self.data.recv().await {
            Some(bytes) => Ok(Some(*bytes)),
            None => match self.end.get() {
                Some(StreamEnd::Finished) => Ok(None),
                Some(StreamEnd::Reset) => Err(ReadError::Reset),
                Some(StreamEnd::SessionEnded) | None => Err(ReadError::SessionEnded),
            },
        }
    }
}

impl StreamWriter {
    /// Sends data, and returns when the connection has taken them: the peer slows the caller.
    ///
    /// Cancel safe: a frame that was begun is completed before the next one of the session. Later frames of these data
    /// are not sent.
    ///
    /// # Errors
    /// When this direction has ended, the stream was reset, or the connection failed.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let Handle { stream, shared } = &*self.handle;
        for chunk in bytes.chunks(MAX_DATA_BYTES) {
            if !shared.streams.is_open_here(*stream) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            shared.write(|writer| writer.put_data(*stream, chunk, false)).await?;
        }
        Ok(())
    }

    /// Ends this direction. It does nothing when the direction has ended already.
    ///
    /// # Errors
    /// When the connection failed.
    pub async fn finish(&self) -> io::Result<()> {
        let Handle { stream, shared } = &*self.handle;
        match shared.streams.end_here(*stream) {
            true => shared.write(|writer| writer.put_data(*stream, &[], true)).await,
            false => Ok(()),
        }
    }

    /// Resets the stream, both directions.
    pub fn reset(self) {
        self.handle.shared.abandon(self.handle.stream);
    }
}
