//! The channels of a WebSocket, for writing.

use crate::activity::Activity;
use pintle_websocket::{CloseCode, Opcode, Writer};
use std::{io, time::Duration};
use tokio::{io::AsyncWrite, sync::Mutex, time::timeout};

/// The channel of standard input.
pub(crate) const STDIN: u8 = 0;
/// The channel of standard output.
pub(crate) const STDOUT: u8 = 1;
/// The channel of standard error.
pub(crate) const STDERR: u8 = 2;
/// The channel of the final status.
pub(crate) const ERROR: u8 = 3;
/// The channel of terminal sizes.
pub(crate) const RESIZE: u8 = 4;
/// The channel by which a client ends another one.
pub(crate) const CLOSE: u8 = 255;

/// How long the final status and the farewell may wait for the client.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(10);

/// The channels of a WebSocket, for writing.
#[derive(Debug)]
pub(crate) struct Channels<W> {
    writer: Mutex<Writer<W>>,
    activity: Activity,
}

impl<W: AsyncWrite + Unpin> Channels<W> {
    pub(crate) fn new(writer: Writer<W>) -> Channels<W> {
        Channels { writer: Mutex::new(writer), activity: Activity::new() }
    }

    pub(crate) fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Sends a message on a channel.
    pub(crate) async fn send(&self, channel: u8, bytes: &[u8]) -> io::Result<()> {
        let sent = self.writer.lock().await.send(Opcode::Binary, &[channel], bytes).await;
        self.activity.note();
        sent
    }

    pub(crate) async fn pong(&self, bytes: &[u8]) -> io::Result<()> {
        self.writer.lock().await.send(Opcode::Pong, bytes, &[]).await
    }

    /// Sends the final status, if there is one, and ends the connection. A client that does not read is not waited for.
    pub(crate) async fn farewell(&self, status: Option<&str>, code: CloseCode) {
        let farewell = async {
            if let Some(status) = status {
                self.send(ERROR, status.as_bytes()).await?;
            }
            self.writer.lock().await.close(code).await
        };
        if !matches!(timeout(FAREWELL_TIMEOUT, farewell).await, Ok(Ok(()))) {
            tracing::debug!("a client left before the status of its command");
        }
    }
}
