//! The auditor: the policy and its backends.

use crate::{
    Attributes, AuditContext, AuditMetrics, Backend, Event, Level, Policy, RequestMetadata, encode::Encoded,
};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, timeout_at};

/// Writes the audit events that the policy selects.
pub struct Auditor {
    policy: Policy,
    backends: Vec<Backend>,
    metrics: AuditMetrics,
    has_legacy: bool,
    /// The smallest size limit of an event among the backends, in bytes.
    max_event_size: Option<usize>,
}

impl Auditor {
    /// An auditor that sends the events which the policy selects to these backends.
    pub fn new(policy: Policy, backends: Vec<Backend>, metrics: AuditMetrics) -> Arc<Auditor> {
        let has_legacy = backends.iter().any(Backend::wants_legacy);
        let max_event_size = backends.iter().filter_map(Backend::max_event_size).min();
        let metrics = metrics.with_levels();
        Arc::new(Auditor { policy, backends, metrics, has_legacy, max_event_size })
    }

    /// Creates the context of a request; `None` if the policy selects no events for it. `metadata` is called only for
    /// a context.
    pub fn begin(
        self: &Arc<Self>,
        attributes: &Attributes<'_>,
        metadata: impl FnOnce() -> RequestMetadata,
    ) -> Option<Arc<AuditContext>> {
        let config = self.policy.evaluate(attributes);
        self.metrics.level(config.level);
        match config.level {
            Level::None => None,
            _ => Some(Arc::new(AuditContext::new(self.clone(), config, metadata()))),
        }
    }

    /// Counts a request that was refused because a backend failed.
    pub fn note_rejected(&self) {
        self.metrics.rejected();
    }

    /// Whether a request has to wait before all backends have their events. A single log has them at once.
    pub(crate) fn waits(&self) -> bool {
        let has_several = self.backends.len() > 1;
        self.backends.iter().any(|backend| backend.waits() || (has_several && backend.is_blocking()))
    }

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

    /// Flushes the queues for up to `patience`. Later events are dropped and counted by backends that have queues.
    pub async fn shutdown(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        for backend in &self.backends {
            if timeout_at(deadline, backend.shutdown()).await.is_err() {
                tracing::error!("audit events are lost: the server ends before they are sent");
            }
        }
    }
}
