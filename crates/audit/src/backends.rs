//! All backends of the server.

use crate::{AuditMetrics, Backend, Event, backend::Ahead, encode::Encoded, log::Queued};
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

/// Events that are queued, each with the index of its backend.
pub(crate) type Unconfirmed = Vec<(usize, Queued)>;

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

    /// Encodes an event, whose request has been [described](crate::encode::describe), in the forms that the backends need.
    pub(crate) fn encode(&self, event: &Event, request: &[u8]) -> Encoded {
        self.metrics.event();
        Encoded::new(event, request, self.has_legacy, self.max_event_size)
    }

    /// Sends an event to all backends. Returns false when a strict backend failed.
    pub(crate) async fn send(&self, encoded: &Encoded) -> bool {
        let mut is_told = true;
        for backend in &self.backends {
            is_told &= backend.process(encoded, &self.metrics).await;
        }
        is_told
    }

    /// Sends an event before its request is executed, and returns what is queued. `None` when a strict backend failed.
    pub(crate) async fn send_ahead(&self, encoded: &Encoded) -> Option<Unconfirmed> {
        let mut unconfirmed = Unconfirmed::new();
        let mut is_told = true;
        for (at, backend) in self.backends.iter().enumerate() {
            match backend.process_ahead(encoded, &self.metrics).await {
                Ahead::Queued(queued) => unconfirmed.push((at, queued)),
                Ahead::Processed(told) => is_told &= told,
            }
        }
        is_told.then_some(unconfirmed)
    }

    /// Waits until queued events are written.
    pub(crate) async fn confirm(&self, unconfirmed: Unconfirmed) {
        for (at, queued) in unconfirmed {
            if let Some(backend) = self.backends.get(at) {
                backend.confirm(queued, &self.metrics).await;
            }
        }
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
