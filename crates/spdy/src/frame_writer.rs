//! Writes frames.

use crate::{
    Headers,
    frame::{Control, FIN, HEADER_BYTES, Header, SYN_REPLY, SYN_STREAM},
    inflater::store,
};
use bytes::{Buf, BufMut, Bytes};
use std::{fmt, io};
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// The connection of a session, for writing.
pub(crate) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Writes frames to a connection.
pub(crate) struct FrameWriter {
    /// `None` when the connection is closed.
    output: Option<Output>,
    /// The rest of the frame that is being written.
    pending: Bytes,
    has_sent_headers: bool,
}

impl fmt::Debug for FrameWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameWriter").field("pending", &self.pending.len()).finish_non_exhaustive()
    }
}

impl FrameWriter {
    pub(crate) fn new(output: Output) -> FrameWriter {
        FrameWriter { output: Some(output), pending: Bytes::new(), has_sent_headers: false }
    }

    /// Writes the frame that was put, or what is left of it. A caller flushes before and after it puts a frame: the
    /// writing of an earlier one may have been given up.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// When the connection fails.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        let Some(output) = &mut self.output else { return Err(io::ErrorKind::NotConnected.into()) };
        while self.pending.has_remaining() {
            output.write_buf(&mut self.pending).await?;
        }
        // An idle session keeps no frame.
        self.pending = Bytes::new();
        output.flush().await
    }

    pub(crate) fn put_data(&mut self, stream: u32, bytes: &[u8], ends: bool) {
        let mut frame = Vec::with_capacity(HEADER_BYTES + bytes.len());
        let flags = if ends { FIN } else { 0 };
        Header::Data { stream, flags, length: bytes.len() }.put(&mut frame);
        frame.extend_from_slice(bytes);
        self.pending = frame.into();
    }

    pub(crate) fn put_control(&mut self, control: Control) {
        let mut frame = Vec::with_capacity(16);
        control.put(&mut frame);
        self.pending = frame.into();
    }

    pub(crate) fn put_open(&mut self, stream: u32, headers: &Headers) {
        // No associated stream, no priority.
        self.put_headers(SYN_STREAM, stream, &[0; 6], headers);
    }

    pub(crate) fn put_reply(&mut self, stream: u32) {
        self.put_headers(SYN_REPLY, stream, &[], &Headers::default());
    }

    fn put_headers(&mut self, kind: u16, stream: u32, fixed: &[u8], headers: &Headers) {
        let mut payload = stream.to_be_bytes().to_vec();
        payload.put_slice(fixed);
        let mut block = Vec::new();
        headers.put(&mut block);
        store(&block, !self.has_sent_headers, &mut payload);
        self.has_sent_headers = true;
        let mut frame = Vec::with_capacity(HEADER_BYTES + payload.len());
        Header::Control { kind, flags: 0, length: payload.len() }.put(&mut frame);
        frame.append(&mut payload);
        self.pending = frame.into();
    }

    /// Writes what is pending and shuts the connection down for writing.
    ///
    /// # Errors
    /// When the connection fails.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        self.flush().await?;
        match &mut self.output {
            Some(output) => output.shutdown().await,
            None => Ok(()),
        }
    }

    /// Closes the connection.
    pub(crate) fn close(&mut self) {
        self.output = None;
    }
}
