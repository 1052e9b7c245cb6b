//! The state that a session, its streams and its task share.

use crate::{
    SessionEnd,
    frame::{Control, Reset},
    frame_writer::FrameWriter,
    streams::Streams,
};
use std::{io, sync::atomic::AtomicBool};
use tokio::sync::{Mutex, mpsc, watch};

/// The state that the session, its streams and its task share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) writer: Mutex<FrameWriter>,
    pub(crate) streams: Streams,
    /// Frames that the task sends when the peer reads.
    pub(crate) answers: mpsc::Sender<Control>,
    pub(crate) end: watch::Sender<Option<SessionEnd>>,
    /// Whether this side closes the session.
    pub(crate) closing: watch::Sender<bool>,
    /// Whether a ping of this side has no answer yet.
    pub(crate) is_pinging: AtomicBool,
}

impl Shared {
    /// Writes the frame that `put` puts, and returns its result.
    ///
    /// # Errors
    /// When the connection fails or the session ends.
    pub(crate) async fn write<T>(&self, put: impl FnOnce(&mut FrameWriter) -> T) -> io::Result<T> {
        let mut end = self.end.subscribe();
        let written = async {
            let mut writer = self.writer.lock().await;
            writer.flush().await?;
            let put = put(&mut writer);
            writer.flush().await?;
            Ok(put)
        };
        tokio::select! {
            biased;
            written = written => written,
            // A peer that does not read keeps nobody waiting.
            _ = end.wait_for(Option::is_some) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Nobody uses a stream any more: the peer is told unless both directions have ended.
    pub(crate) fn abandon(&self, stream: u32) {
        if self.streams.forget(stream) {
            // The task may be gone; and a peer that does not read its answers ends the session soon.
            self.answers.try_send(Control::Reset { stream, reset: Reset::Cancel }).ok();
        }
    }

    /// Ends the session and its streams.
    pub(crate) fn end(&self, end: SessionEnd) {
        self.end.send_if_modified(|current| {
            let is_first = current.is_none();
            if is_first {
                *current = Some(end);
            }
            is_first
        });
        self.streams.end();
    }
}
