//! The auditor: the policy and its backends.

use crate::{
    Attributes, AuditContext, AuditMetrics, Backend, Level, Policy, RequestMetadata, backends::Backends,
};
use std::{sync::Arc, time::Duration};

/// Writes the audit events that the policy selects.
pub struct Auditor {
    policy: Policy,
    backends: Arc<Backends>,
    metrics: AuditMetrics,
}

impl Auditor {
    /// An auditor that sends the events which the policy selects to these backends.
    pub fn new(policy: Policy, backends: Vec<Backend>, metrics: AuditMetrics) -> Arc<Auditor> {
        let backends = Arc::new(Backends::new(backends, metrics.clone()));
        Arc::new(Auditor { policy, backends, metrics })
    }

    /// Creates the context of a request; `None` if the policy selects no events for it. `metadata` is called only for
    /// a context.
    pub fn begin(
        &self,
        attributes: &Attributes<'_>,
        metadata: impl FnOnce() -> RequestMetadata,
    ) -> Option<Arc<AuditContext>> {
        let config = self.policy.evaluate(attributes);
        self.metrics.level(config.level);
        match config.level {
            Level::None => None,
            _ => Some(Arc::new(AuditContext::new(self.backends.clone(), config, metadata()))),
        }
    }

    /// Counts a request that was refused because a backend failed.
    pub fn note_rejected(&self) {
        self.metrics.rejected();
    }

    /// Flushes the queues for up to `patience`. Later events are dropped and counted by backends that have queues.
    pub async fn shutdown(&self, patience: Duration) {
        self.backends.shutdown(patience).await;
    }
}
