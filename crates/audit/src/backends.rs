//! All backends of the server.

use crate::{AuditMetrics, Backend, Event, encode::Encoded};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The backends, which get every event.
pub(crate) struct Backends {
    backends: Vec<Backend>,
    metrics: AuditMetrics,
    has_legacy: bool,
    /// The smallest size limit of an event among the backends, in bytes.
    max_event_size: Option<usize>,
}

impl Backends {
    pub(crate) fn new(backends: Vec<Backend>, metrics: AuditMetrics) -> Backends {
        let has_legacy = backends.iter().any(Backend::wants_legacy);
        let max_event_size = backends.iter().filter_map(Backend::max_event_size).min();
        Backends { backends, metrics, has_legacy, max_event_size }
    }

    /// Whether a request has to wait before all backends have their events. A single log has them at once.
    pub(crate) fn waits(&self) -> bool {
        let has_several = self.backends.len() > 1;
        self.backends.iter().any(|backend| backend.waits() || (has_several && backend.is_blocking()))
    }

    /// Encodes an event in the forms that the backends need.
    pub(crate) fn encode(&self, event: &Event) -> Encoded {
        self.metrics.event();
        Encoded::new(event, self.has_legacy, self.max_event_size)
    }

    /// Sends an event to all backends. Returns false when a strict backend failed.
    pub(crate) async fn send(&self, encoded: &Encoded) -> bool {
        let mut is_told = true;
        for backend in &self.backends {
            is_told &= backend.process(encoded, &self.metrics).await;
        }
        is_told
    }

    /// Flushes the queues for up to `patience`.
    pub(crate) async fn shutdown(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        for backend in &self.backends {
            if timeout_at(deadline, backend.shutdown()).await.is_err() {
                tracing::error!("audit events are lost: the server ends before they are sent");
            }
        }
    }
}
