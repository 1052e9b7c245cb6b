//! The metrics of auditing, under Kubernetes' names
//! (<https://kubernetes.io/docs/reference/instrumentation/metrics/>).

use crate::Level;
use prometheus::{IntCounter, IntCounterVec, Opts, core::Collector};

/// All metrics of auditing.
#[derive(Debug, Clone)]
pub struct AuditMetrics {
    events: IntCounter,
    errors: IntCounterVec,
    levels: IntCounterVec,
    rejected: IntCounter,
}

impl AuditMetrics {
    /// New metrics.
    ///
    /// # Errors
    /// Never, because the names are valid; the library checks them at run time.
    pub fn new() -> Result<AuditMetrics, prometheus::Error> {
        let levels = IntCounterVec::new(
            Opts::new(
                "apiserver_audit_level_total",
                "Requests by the level that the audit policy has for them.",
            ),
            &["level"],
        )?;
        Ok(AuditMetrics {
            events: IntCounter::new(
                "apiserver_audit_event_total",
                "Audit events that were made and sent to the backends.",
            )?,
            errors: IntCounterVec::new(
                Opts::new(
                    "apiserver_audit_error_total",
                    "Audit events that were not told as they should be, by the part that failed.",
                ),
                &["plugin"],
            )?,
            levels,
            rejected: IntCounter::new(
                "apiserver_audit_requests_rejected_total",
                "Requests that were refused since an audit backend failed.",
            )?,
        })
    }

    /// The collectors, for registration.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![
            Box::new(self.events.clone()),
            Box::new(self.errors.clone()),
            Box::new(self.levels.clone()),
            Box::new(self.rejected.clone()),
        ]
    }

    pub(crate) fn level(&self, level: Level) {
        self.levels.with_label_values(&[level.as_str()]).inc();
    }

    pub(crate) fn event(&self) {
        self.events.inc();
    }

    pub(crate) fn rejected(&self) {
        self.rejected.inc();
    }

    /// Counts and logs lost events. The events themselves are not logged: their contents belong in the audit log
    /// only.
    pub(crate) fn failed(&self, plugin: &str, events: usize, why: &dyn std::fmt::Display) {
        self.errors.with_label_values(&[plugin]).inc_by(events as u64);
        tracing::error!(plugin, events, "audit events are lost: {why}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_has_a_series_once_a_request_had_it() {
        let metrics = AuditMetrics::new().unwrap();
        let series =
            || metrics.levels.collect().iter().map(|family| family.get_metric().len()).sum::<usize>();
        assert_eq!(series(), 0);
        metrics.level(Level::Metadata);
        metrics.level(Level::Metadata);
        assert_eq!(series(), 1);
        assert_eq!(metrics.levels.with_label_values(&[Level::Metadata.as_str()]).get(), 2);
    }
}
