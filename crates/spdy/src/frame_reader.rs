//! Reads frames, the payload of data frames piece by piece.

use crate::{
    FrameError, Headers,
    frame::{
        self, FIN, GOAWAY, HEADER_BYTES, HEADERS, Header, PING, RST_STREAM, SETTINGS, SYN_REPLY, SYN_STREAM,
        UNIDIRECTIONAL, WINDOW_UPDATE,
    },
    inflater::Inflater,
    role::Role,
};
use bytes::{Buf, Bytes, BytesMut};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The most bytes of a data frame that are handed on at once.
const PIECE_BYTES: usize = 32 << 10;
/// The buffer size while little is received, in bytes: an idle session holds no more.
const IDLE_BYTES: usize = 512;

/// A frame of the peer, or a piece of one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A piece of a data frame; `ends` when the peer ends its direction of the stream with it.
    Data { stream: u32, bytes: Bytes, ends: bool },
    /// A new stream.
    Open { stream: u32, headers: Headers, ends: bool, is_one_way: bool },
    /// The answer to a new stream.
    Reply { stream: u32, ends: bool },
    /// More headers of a stream, which have no meaning.
    Headers { stream: u32, ends: bool },
    /// The end of a stream.
    Reset { stream: u32 },
    /// A ping, or the answer to one.
    Ping(u32),
    /// The end of the session.
    GoAway,
    /// A frame without a meaning for sessions that have no flow control.
    Ignored,
}

/// Reads frames.
#[derive(Debug)]
pub(crate) struct FrameReader<S> {
    stream: S,
    role: Role,
    buffer: BytesMut,
    /// Whether the last read filled the buffer.
    has_more: bool,
    frame: Option<Header>,
    inflater: Inflater,
}

impl<S: AsyncRead + Unpin> FrameReader<S> {
    pub(crate) fn new(stream: S, role: Role) -> FrameReader<S> {
        FrameReader {
            stream,
            role,
            buffer: BytesMut::new(),
            has_more: false,
            frame: None,
            inflater: Inflater::default(),
        }
    }

    /// The next event; `None` when the connection ended between frames.
    ///
    /// Cancel safe: nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// When the connection fails or the peer breaks the protocol.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, FrameError> {
        loop {
            if let Some(event) = self.take()? {
                return Ok(Some(event));
            }
            let needed = match self.frame {
                Some(Header::Control { length, .. }) => length.saturating_sub(self.buffer.len()),
                Some(Header::Data { .. }) | None if self.has_more => PIECE_BYTES,
                Some(Header::Data { .. }) | None => IDLE_BYTES,
            };
            if self.buffer.is_empty() {
                // The memory of the last frames is given back.
                self.buffer = BytesMut::new();
            }
            self.buffer.reserve(needed.max(1));
            let read = self.stream.read_buf(&mut self.buffer).await?;
            self.has_more = self.buffer.len() == self.buffer.capacity();
            if read == 0 {
                return match self.buffer.is_empty() && self.frame.is_none() {
                    true => Ok(None),
                    false => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                };
            }
        }
    }

    /// Takes the next event from the buffer.
    fn take(&mut self) -> Result<Option<Event>, FrameError> {
        let frame = match self.frame {
            Some(frame) => frame,
            None => {
                let Some(bytes) = self.buffer.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
                let frame = Header::read(*bytes)?;
                self.buffer.advance(HEADER_BYTES);
                *self.frame.insert(frame)
            }
        };
        match frame {
            Header::Data { stream, flags, length } => {
                let available = length.min(self.buffer.len()).min(PIECE_BYTES);
                if available == 0 && length > 0 {
                    return Ok(None);
                }
                let bytes = self.buffer.split_to(available).freeze();
                let rest = length - available;
                self.frame = (rest > 0).then_some(Header::Data { stream, flags, length: rest });
                Ok(Some(Event::Data { stream, bytes, ends: rest == 0 && flags & FIN != 0 }))
            }
            Header::Control { kind, flags, length } => {
                if self.buffer.len() < length {
                    return Ok(None);
                }
                self.frame = None;
                let payload = self.buffer.split_to(length);
                self.control(kind, flags, &payload).map(Some)
            }
        }
    }

    fn control(&mut self, kind: u16, flags: u8, mut payload: &[u8]) -> Result<Event, FrameError> {
        let ends = flags & FIN != 0;
        match kind {
            SYN_STREAM => {
                let stream = frame::take_stream(&mut payload)?;
                // The associated stream, the priority and a slot of credentials.
                payload.advance(6);
                let headers = self.headers(payload)?;
                let is_one_way = flags & UNIDIRECTIONAL != 0;
                Ok(Event::Open { stream, headers, ends, is_one_way })
            }
            SYN_REPLY | HEADERS => {
                let stream = frame::take_stream(&mut payload)?;
                self.headers(payload)?;
                match kind {
                    SYN_REPLY => Ok(Event::Reply { stream, ends }),
                    _ => Ok(Event::Headers { stream, ends }),
                }
            }
            RST_STREAM => Ok(Event::Reset { stream: frame::take_stream(&mut payload)? }),
            PING => Ok(Event::Ping(payload.get_u32())),
            GOAWAY => Ok(Event::GoAway),
            SETTINGS | WINDOW_UPDATE => Ok(Event::Ignored),
            unknown => Err(FrameError::Type(unknown)),
        }
    }

    /// Reads compressed headers. A client does not look at those that a server sends, all of which are empty, and saves
    /// the memory of the decompression.
    fn headers(&mut self, compressed: &[u8]) -> Result<Headers, FrameError> {
        match self.role {
            Role::Client => Ok(Headers::default()),
            Role::Server => Headers::read(&self.inflater.inflate(compressed)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn events(role: Role, bytes: &[u8]) -> (Vec<Event>, Result<(), FrameError>) {
        let mut reader = FrameReader::new(bytes, role);
        let mut events = Vec::new();
        loop {
            match reader.next().await {
                Ok(Some(event)) => events.push(event),
                Ok(None) => return (events, Ok(())),
                Err(error) => return (events, Err(error)),
            }
        }
    }

    #[tokio::test]
    async fn frames_are_read() {
        let frames = b"\0\0\0\x01\x01\0\0\x02ab\x80\x03\0\x03\0\0\0\x08\0\0\0\x01\0\0\0\x05\
            \x80\x03\0\x06\0\0\0\x04\0\0\0\x07\x80\x03\0\x09\0\0\0\x08\0\0\0\x01\0\0\0\x05\
            \x80\x03\0\x02\x01\0\0\x04\0\0\0\x03\x80\x03\0\x07\0\0\0\x08\0\0\0\0\0\0\0\0";
        let (events, end) = events(Role::Client, frames).await;
        end.unwrap();
        assert_eq!(
            events,
            [
                Event::Data { stream: 1, bytes: Bytes::from_static(b"ab"), ends: true },
                Event::Reset { stream: 1 },
                Event::Ping(7),
                Event::Ignored,
                Event::Reply { stream: 3, ends: true },
                Event::GoAway
            ]
        );
    }

    #[tokio::test]
    async fn frames_that_are_cut_short_are_errors() {
        let frames: [&[u8]; 3] = [b"\0\0\0", b"\0\0\0\x01\0\0\0\x02a", b"\x80\x03\0\x06\0\0\0\x04\0"];
        for frame in frames {
            let (_, end) = events(Role::Client, frame).await;
            assert!(
                matches!(end, Err(FrameError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof)
            );
        }
    }
}
