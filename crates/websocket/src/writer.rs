//! Writes frames.

use crate::{
    Opcode, Role,
    frame::{Header, MAX_HEADER_BYTES, apply_mask},
};
use bytes::{Buf, BytesMut};
use std::io;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// The status code of a close frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseCode(pub u16);

impl CloseCode {
    /// The purpose of the connection is fulfilled.
    pub const NORMAL: CloseCode = CloseCode(1000);
    /// The peer broke the protocol.
    pub const PROTOCOL_ERROR: CloseCode = CloseCode(1002);
}

/// Writes frames, each of them a whole message or a control frame.
#[derive(Debug)]
pub struct Writer<S> {
    stream: S,
    role: Role,
    /// The rest of the frame that is being written.
    pending: BytesMut,
}

impl<S: AsyncWrite + Unpin> Writer<S> {
    /// A writer of the frames of a side.
    pub fn new(stream: S, role: Role) -> Writer<S> {
        Writer { stream, role, pending: BytesMut::new() }
    }

    /// The stream. The rest of a frame that was begun is lost.
    pub fn into_inner(self) -> S {
        self.stream
    }

    /// Sends a frame, whose payload is `head` and `rest`. It returns when the connection has taken the frame.
    ///
    /// Cancel safe: a frame that was begun before the future was dropped is completed before the next one.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn send(&mut self, opcode: Opcode, head: &[u8], rest: &[u8]) -> io::Result<()> {
        self.flush().await?;
        let mask = (self.role == Role::Client).then(rand::random::<[u8; 4]>);
        let length = head.len() + rest.len();
        self.pending.reserve(MAX_HEADER_BYTES + length);
        Header { is_final: true, opcode: Some(opcode), length: length as u64, mask }.put(&mut self.pending);
        let payload_at = self.pending.len();
        self.pending.extend_from_slice(head);
        self.pending.extend_from_slice(rest);
        if let (Some(mask), Some(payload)) = (mask, self.pending.get_mut(payload_at..)) {
            apply_mask(payload, mask, 0);
        }
        self.flush().await
    }

    /// Sends a close frame and shuts the connection down for writing.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn close(&mut self, code: CloseCode) -> io::Result<()> {
        self.send(Opcode::Close, &code.0.to_be_bytes(), &[]).await?;
        self.stream.shutdown().await
    }

    async fn flush(&mut self) -> io::Result<()> {
        while self.pending.has_remaining() {
            self.stream.write_buf(&mut self.pending).await?;
        }
        // An idle connection keeps no buffer.
        self.pending = BytesMut::new();
        self.stream.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use tokio::io::{AsyncReadExt, duplex};

    #[tokio::test]
    async fn a_frame_whose_future_was_dropped_is_completed_before_the_next_one() {
        let (near, mut far) = duplex(4);
        let mut writer = Writer::new(near, Role::Server);
        assert!(writer.send(Opcode::Text, b"\0", b"abcdef").now_or_never().is_none());
        let rest = tokio::spawn(async move { writer.close(CloseCode::NORMAL).await });
        let mut read = Vec::new();
        far.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, b"\x81\x07\0abcdef\x88\x02\x03\xe8");
        rest.await.unwrap().unwrap();
    }
}
