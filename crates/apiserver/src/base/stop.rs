//! The signal that the server stops.

use tokio::sync::watch;

/// Waits until the server is stopped, or the sender of the signal is dropped.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    // The result borrows the channel and is not needed.
    drop(stop.wait_for(|stop| *stop).await);
}
