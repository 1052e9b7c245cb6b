//! The signals of a server's end, in kube-apiserver's order.
//!
//! ```text
//! begun ──delay──► leaving ──► port closed ──requests end──► ending ──► stopped
//! ```
//!
//! `begun`: `/readyz` fails, so that load balancers look elsewhere. `leaving`: the other servers drop this one from the
//! endpoints. The port closes while requests, watches and streams go on; `ending` ends watches and streams. `stopped` ends
//! everything behind the requests.

use std::{sync::Arc, time::Duration};
use tokio::sync::watch;

/// The signals. Each becomes true once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lifecycle(Arc<Signals>);

#[derive(Debug, Default)]
struct Signals {
    begun: watch::Sender<bool>,
    leaving: watch::Sender<bool>,
    port_closed: watch::Sender<bool>,
    ending: watch::Sender<bool>,
    stopped: watch::Sender<bool>,
}

/// How long the other servers may take to drop this one.
const LEAVE_PATIENCE: Duration = Duration::from_secs(20);

impl Lifecycle {
    /// Makes `/readyz` fail.
    pub(crate) fn begin(&self) {
        self.0.begun.send_replace(true);
    }

    /// Whether the shutdown has begun.
    pub(crate) fn has_begun(&self) -> bool {
        *self.0.begun.borrow()
    }

    /// Tells the other servers that this one ends, and waits until they know.
    pub(crate) async fn leave(&self) {
        self.0.leaving.send_replace(true);
        if tokio::time::timeout(LEAVE_PATIENCE, self.0.leaving.closed()).await.is_err() {
            tracing::warn!("the other servers could not be told in time that this one ends");
        }
    }

    /// Closes the port.
    pub(crate) fn close_port(&self) {
        self.0.port_closed.send_replace(true);
    }

    /// Ends watches and streams.
    pub(crate) fn end_watches(&self) {
        self.0.ending.send_replace(true);
    }

    /// Ends everything.
    pub(crate) fn stop(&self) {
        self.begin();
        self.0.leaving.send_replace(true);
        self.close_port();
        self.end_watches();
        self.0.stopped.send_replace(true);
    }

    /// The signal to leave. [`Lifecycle::leave`] waits until all receivers are dropped.
    pub(crate) fn leaving(&self) -> watch::Receiver<bool> {
        self.0.leaving.subscribe()
    }

    /// The signal to accept no further connections.
    pub(crate) fn port_closed(&self) -> watch::Receiver<bool> {
        self.0.port_closed.subscribe()
    }

    /// The signal to end watches and streams.
    pub(crate) fn ending(&self) -> watch::Receiver<bool> {
        self.0.ending.subscribe()
    }

    /// The signal to end background work.
    pub(crate) fn stopped(&self) -> watch::Receiver<bool> {
        self.0.stopped.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn a_server_has_left_when_the_others_know() {
        let lifecycle = Lifecycle::default();
        lifecycle.leave().await;
        let lifecycle = Lifecycle::default();
        let leaving = lifecycle.leaving();
        let mut left = Box::pin(lifecycle.leave());
        assert!(left.as_mut().now_or_never().is_none() && *leaving.borrow());
        drop(leaving);
        left.await;
    }
}
