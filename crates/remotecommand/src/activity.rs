//! Ends connections on which nothing happens.

use std::{sync::Mutex, time::Duration};
use tokio::time::{Instant, sleep_until};

/// How long a connection may be idle: as long as a kubelet allows it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4 * 60 * 60);

/// The latest activity of a connection.
#[derive(Debug)]
pub(crate) struct Activity(Mutex<Instant>);

impl Activity {
    pub(crate) fn new() -> Activity {
        Activity(Mutex::new(Instant::now()))
    }

    /// Something was sent or received.
    pub(crate) fn note(&self) {
        if let Ok(mut latest) = self.0.lock() {
            *latest = Instant::now();
        }
    }

    /// Waits until the connection has been idle for four hours.
    pub(crate) async fn idle(&self) {
        loop {
            let Ok(latest) = self.0.lock().map(|latest| *latest) else { return };
            let end = latest + IDLE_TIMEOUT;
            if Instant::now() >= end {
                return;
            }
            sleep_until(end).await;
        }
    }
}
