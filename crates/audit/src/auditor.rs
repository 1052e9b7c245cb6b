//! Policy and backends together.

use crate::{
    Attributes, AuditContext, AuditMetrics, Backend, Event, Level, Policy, RequestMetadata, encode::Encoded,
};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, timeout_at};

/// Tells of requests.
pub struct Auditor {
    policy: Policy,
    backends: Vec<Backend>,
    metrics: AuditMetrics,
    has_legacy: bool,
    /// The smallest limit of an event's size that a backend has.
    max_event_size: Option<usize>,
}

impl Auditor {
    /// Tells these backends what the policy says.
    pub fn new(policy: Policy, backends: Vec<Backend>, metrics: AuditMetrics) -> Arc<Auditor> {
        let has_legacy = backends.iter().any(Backend::wants_legacy);
        let max_event_size = backends.iter().filter_map(Backend::max_event_size).min();
        let metrics = metrics.with_levels();
        Arc::new(Auditor { policy, backends, metrics, has_legacy, max_event_size })
    }

    /// The context of a request, if the policy has it told of. `metadata` is asked for only then.
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

    /// Counts a request that is refused since a backend failed.
    pub fn note_rejected(&self) {
        self.metrics.rejected();
    }

    /// Whether a request has to wait before all backends have what they are to send. A single log has it at once.
    pub(crate) fn waits(&self) -> bool {
        let has_several = self.backends.len() > 1;
        self.backends.iter().any(|backend| backend.waits() || (has_several && backend.is_blocking()))
    }

    pub(crate) fn encode(&self, event: &Event) -> Encoded {
        self.metrics.event();
        Encoded::new(event, self.has_legacy, self.max_event_size)
    }

    /// Tells all backends. False when one failed that must not.
    pub(crate) async fn send(&self, encoded: &Encoded) -> bool {
        let mut is_told = true;
        for backend in &self.backends {
            is_told &= backend.process(encoded, &self.metrics).await;
        }
        is_told
    }

    /// Sends what waits in queues, no longer than this. Requests that come later are told of no more by backends that have
    /// queues.
    pub async fn shutdown(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        for backend in &self.backends {
            if timeout_at(deadline, backend.shutdown()).await.is_err() {
                tracing::error!("audit events are lost: the server ends before they are sent");
            }
        }
    }
}
