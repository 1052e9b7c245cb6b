//! Reads frames, piece by piece.

use crate::{
    Opcode, ReadError, Role,
    frame::{Header, apply_mask},
};
use bytes::{Bytes, BytesMut};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest payload of a frame, in bytes: that of the servers of Kubernetes. A message may have several frames.
pub const MAX_FRAME_BYTES: u64 = 32 << 20;
/// The most bytes that are read at once, which is the size of the largest piece.
const PIECE_BYTES: usize = 32 << 10;
/// The buffer size while little is received, in bytes: an idle connection holds no more.
const IDLE_BYTES: usize = 512;

/// A message of the peer, or a piece of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A piece of a message. An empty message is one empty piece.
    Piece {
        /// Whether the message is text.
        is_text: bool,
        /// Whether the message begins with this piece.
        is_first: bool,
        /// Whether the message ends with this piece.
        is_last: bool,
        /// The bytes of the piece, at most 32 KiB.
        bytes: Bytes,
    },
    /// A ping; the caller answers with a pong of the same bytes.
    Ping(Bytes),
    /// A pong.
    Pong,
    /// The peer ends the connection, with this status code if it gave one. Nothing follows.
    Close(Option<u16>),
}

/// Reads frames. Fragments of a message are joined, control frames between them are returned as they come.
#[derive(Debug)]
pub struct Reader<S> {
    stream: S,
    role: Role,
    buffer: BytesMut,
    /// Whether the last read filled the buffer.
    has_more: bool,
    frame: Option<Frame>,
    /// The type of the message whose fragments are being read.
    message: Option<Opcode>,
}

/// A frame whose payload is being read.
#[derive(Debug)]
struct Frame {
    opcode: Opcode,
    is_final: bool,
    begins_message: bool,
    /// The bytes of the payload that were taken, and the number of all.
    position: u64,
    length: u64,
    mask: Option<[u8; 4]>,
}

impl<S: AsyncRead + Unpin> Reader<S> {
    /// A reader of the frames that the peer of a side sends.
    pub fn new(stream: S, role: Role) -> Reader<S> {
        Reader { stream, role, buffer: BytesMut::new(), has_more: false, frame: None, message: None }
    }

    /// The stream. Bytes that were read and not returned are lost.
    pub fn into_inner(self) -> S {
        self.stream
    }

    /// The next piece or control frame; `None` when the connection ended between frames without a close frame.
    ///
    /// Cancel safe: nothing is lost when the future is dropped. After an error the connection is unusable.
    ///
    /// # Errors
    /// When the connection fails or the peer breaks the protocol.
    pub async fn next(&mut self) -> Result<Option<Event>, ReadError> {
        loop {
            if let Some(event) = self.take()? {
                return Ok(Some(event));
            }
            // A capacity of its own for each read: what is idle keeps little, and pieces are handed on without a copy.
            if self.buffer.is_empty() {
                self.buffer = BytesMut::new();
            }
            self.buffer.reserve(if self.has_more { PIECE_BYTES } else { IDLE_BYTES });
            let read = self.stream.read_buf(&mut self.buffer).await?;
            self.has_more = self.buffer.len() == self.buffer.capacity();
            if read == 0 {
                let is_between_frames =
                    self.frame.is_none() && self.message.is_none() && self.buffer.is_empty();
                return match is_between_frames {
                    true => Ok(None),
                    false => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                };
            }
        }
    }

    /// Takes the next event from the buffer.
    fn take(&mut self) -> Result<Option<Event>, ReadError> {
        let frame = match &mut self.frame {
            Some(frame) => frame,
            None => {
                let Some(header) = Header::take(&mut self.buffer)? else { return Ok(None) };
                let frame = self.begin(header)?;
                self.frame.insert(frame)
            }
        };
        let left = frame.length - frame.position;
        let is_control = frame.opcode.is_control();
        let available = u64::min(left, self.buffer.len() as u64);
        // Control frames are short and come whole.
        if if is_control { available < left } else { available == 0 && left > 0 } {
            return Ok(None);
        }
        let length = usize::min(available as usize, PIECE_BYTES);
        let mut bytes = self.buffer.split_to(length);
        if let Some(mask) = frame.mask {
            apply_mask(&mut bytes, mask, frame.position);
        }
        let is_first = frame.begins_message && frame.position == 0;
        frame.position += length as u64;
        let ends_frame = frame.position == frame.length;
        let (opcode, is_last) = (frame.opcode, ends_frame && frame.is_final);
        if ends_frame {
            self.frame = None;
            if is_last && !is_control {
                self.message = None;
            }
        }
        let bytes = bytes.freeze();
        Ok(Some(match opcode {
            Opcode::Text => Event::Piece { is_text: true, is_first, is_last, bytes },
            Opcode::Binary => Event::Piece { is_text: false, is_first, is_last, bytes },
            Opcode::Ping => Event::Ping(bytes),
            Opcode::Pong => Event::Pong,
            Opcode::Close => Event::Close(bytes.first_chunk::<2>().map(|code| u16::from_be_bytes(*code))),
        }))
    }

    fn begin(&mut self, header: Header) -> Result<Frame, ReadError> {
        if header.mask.is_some() != (self.role == Role::Server) {
            return Err(ReadError::Mask);
        }
        if header.length > MAX_FRAME_BYTES {
            return Err(ReadError::TooLarge(header.length));
        }
        let (opcode, begins_message) = match (header.opcode, self.message) {
            (Some(opcode), _) if opcode.is_control() => (opcode, false),
            (Some(opcode), None) => {
                self.message = Some(opcode);
                (opcode, true)
            }
            (None, Some(opcode)) => (opcode, false),
            (Some(_), Some(_)) | (None, None) => return Err(ReadError::Fragments),
        };
        Ok(Frame {
            opcode,
            is_final: header.is_final,
            begins_message,
            position: 0,
            length: header.length,
            mask: header.mask,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CloseCode, Writer};
    use proptest::prelude::*;
    use tokio::io::{AsyncWriteExt, duplex};

    /// Reads all events of bytes that arrive in parts of a size.
    async fn events(role: Role, bytes: &[u8], part: usize) -> (Vec<Event>, Option<ReadError>) {
        let (mut near, far) = duplex(part.max(1));
        let bytes = bytes.to_vec();
        let sent = tokio::spawn(async move {
            let _ = near.write_all(&bytes).await;
        });
        let mut reader = Reader::new(far, role);
        let mut events = Vec::new();
        let end = loop {
            match reader.next().await {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        drop(reader);
        sent.await.unwrap();
        (events, end)
    }

    fn piece(is_first: bool, is_last: bool, bytes: &'static str) -> Event {
        Event::Piece { is_text: true, is_first, is_last, bytes: Bytes::from(bytes) }
    }

    #[tokio::test]
    async fn fragments_are_joined_and_control_frames_come_between() {
        let frames = b"\x01\x02ab\x89\x01p\x00\x01c\x80\x00\x88\x02\x03\xe8";
        let (events, end) = events(Role::Client, frames, 1024).await;
        assert_eq!(
            events,
            [
                piece(true, false, "ab"),
                Event::Ping(Bytes::from("p")),
                piece(false, false, "c"),
                piece(false, true, ""),
                Event::Close(Some(1000))
            ]
        );
        assert!(end.is_none());
    }

    #[tokio::test]
    async fn frames_that_break_the_protocol_end_the_reading() {
        let cases: [(&[u8], &str); 6] = [
            (b"\x81\x80\0\0\0\0", "the mask of a frame is missing or unexpected"),
            (b"\x80\x00", "the fragments of a message are out of order"),
            (b"\x01\x01a\x81\x01b", "the fragments of a message are out of order"),
            (b"\x82\x7f\0\0\0\0\x02\0\0\x01", "a frame has 33554433 bytes"),
            (b"\x82\x05ab", "unexpected end of file"),
            (b"\x02\x01a", "unexpected end of file"),
        ];
        for (frames, message) in cases {
            let (_, error) = events(Role::Client, frames, 1024).await;
            assert_eq!(error.unwrap().to_string(), message);
        }
        let (_, error) = events(Role::Server, b"\x81\x00", 1024).await;
        assert!(matches!(error, Some(ReadError::Mask)));
    }

    /// A frame whose header announces 32 MiB takes the memory of one piece, and its sender waits for the reader.
    #[tokio::test(start_paused = true)]
    async fn a_reader_that_does_not_read_stops_the_sender() {
        let (mut near, far) = duplex(1024);
        let mut reader = Reader::new(far, Role::Client);
        near.write_all(b"\x82\x7f\0\0\0\0\x02\0\0\0").await.unwrap();
        near.write_all(&[7; 100]).await.unwrap();
        let Ok(Some(Event::Piece { bytes, is_last: false, .. })) = reader.next().await else { panic!() };
        assert_eq!(bytes.len(), 100);
        let rest = near.write_all(&[7; 100 << 10]);
        assert!(tokio::time::timeout(std::time::Duration::from_secs(9), rest).await.is_err());
        let Ok(Some(Event::Piece { bytes, .. })) = reader.next().await else { panic!() };
        assert!(bytes.len() <= PIECE_BYTES);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn messages_arrive_as_they_were_written(
            messages in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..40_000)), 1..4),
            from_client: bool,
            part in 100..40_000_usize,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let (from, to) = match from_client {
                true => (Role::Client, Role::Server),
                false => (Role::Server, Role::Client),
            };
            runtime.block_on(async {
                let mut written = Vec::new();
                let mut writer = Writer::new(&mut written, from);
                for (is_text, bytes) in &messages {
                    let opcode = if *is_text { Opcode::Text } else { Opcode::Binary };
                    let (head, rest) = bytes.split_at(bytes.len() / 3);
                    writer.send(opcode, head, rest).await.unwrap();
                }
                writer.close(CloseCode::NORMAL).await.unwrap();
                let (events, end) = events(to, &written, part).await;
                assert!(end.is_none());
                let mut read = Vec::new();
                for event in events {
                    match event {
                        Event::Piece { is_text, is_first, bytes, .. } => {
                            if is_first {
                                read.push((is_text, Vec::new()));
                            }
                            let (_, message) = read.last_mut().unwrap();
                            message.extend_from_slice(&bytes);
                        }
                        Event::Close(code) => assert_eq!(code, Some(1000)),
                        other => panic!("{other:?}"),
                    }
                }
                assert_eq!(read, messages);
            });
        }
    }
}
