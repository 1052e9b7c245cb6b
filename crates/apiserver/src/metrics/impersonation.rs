//! Records impersonation.

use super::metric_registry::MetricRegistry;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, exponential_buckets};
use std::time::Duration;

/// Counts and durations of impersonation attempts, and of the authorization checks they make.
pub struct ImpersonationMetrics {
    attempts: Counted,
    authorizations: Counted,
}

struct Counted {
    total: IntCounterVec,
    duration: HistogramVec,
}

impl ImpersonationMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    /// When a metric of the same name is registered already.
    pub(super) fn register(registry: &MetricRegistry) -> Result<ImpersonationMetrics, prometheus::Error> {
        Ok(ImpersonationMetrics {
            attempts: Counted::register(
                registry,
                "attempts",
                "Attempts to act as another user, by mode and decision.",
            )?,
            authorizations: Counted::register(
                registry,
                "authorization_attempts",
                "What was asked of the authorizer for them, by mode and decision.",
            )?,
        })
    }

    /// Records an attempt and the mode that allowed it; the mode of a denied attempt is "".
    pub(crate) fn attempted(&self, mode: &str, is_allowed: bool, duration: Duration) {
        self.attempts.note(mode, is_allowed, duration);
    }

    /// Records one authorization check of a mode.
    pub(crate) fn authorized(&self, mode: &str, is_allowed: bool, duration: Duration) {
        self.authorizations.note(mode, is_allowed, duration);
    }
}

impl Counted {
    fn register(registry: &MetricRegistry, name: &str, help: &str) -> Result<Counted, prometheus::Error> {
        let labels = ["mode", "decision"];
        let name = format!("apiserver_impersonation_{name}");
        let total = IntCounterVec::new(Opts::new(format!("{name}_total"), help), &labels)?;
        let duration = HistogramOpts::new(format!("{name}_duration_seconds"), help);
        let duration = HistogramVec::new(duration.buckets(exponential_buckets(0.001, 2.0, 15)?), &labels)?;
        registry.register(Box::new(total.clone()))?;
        registry.register(Box::new(duration.clone()))?;
        Ok(Counted { total, duration })
    }

    fn note(&self, mode: &str, is_allowed: bool, duration: Duration) {
        let labels = [mode, if is_allowed { "allowed" } else { "denied" }];
        self.total.with_label_values(&labels).inc();
        self.duration.with_label_values(&labels).observe(duration.as_secs_f64());
    }
}
