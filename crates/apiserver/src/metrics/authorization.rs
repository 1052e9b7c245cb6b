//! Records authorization decisions.

use super::metric_registry::MetricRegistry;
use pintle_auth::authz::{Decision, Verdict};
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, exponential_buckets,
};
use std::time::Duration;

/// Counts and durations of authorization decisions. The series are looked up once, since every request records one.
pub(super) struct AuthorizationMetrics {
    allowed: Series,
    denied: Series,
    no_opinion: Series,
    error: Series,
}

struct Series {
    total: IntCounter,
    duration: Histogram,
}

impl AuthorizationMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    /// When a metric of the same name is registered already.
    pub(super) fn register(registry: &MetricRegistry) -> Result<AuthorizationMetrics, prometheus::Error> {
        let total =
            Opts::new("authorization_attempts_total", "Requests that were authorized or not, by result.");
        let total = IntCounterVec::new(total, &["result"])?;
        let duration =
            HistogramOpts::new("authorization_duration_seconds", "How long authorization took, by result.");
        let duration =
            HistogramVec::new(duration.buckets(exponential_buckets(0.001, 2.0, 15)?), &["result"])?;
        registry.register(Box::new(total.clone()))?;
        registry.register(Box::new(duration.clone()))?;
        let series = |result: &str| Series {
            total: total.with_label_values(&[result]),
            duration: duration.with_label_values(&[result]),
        };
        Ok(AuthorizationMetrics {
            allowed: series("allowed"),
            denied: series("denied"),
            no_opinion: series("no-opinion"),
            error: series("error"),
        })
    }

    pub(super) fn note(&self, verdict: &Verdict, duration: Duration) {
        let series = match verdict.decision {
            Decision::Allow => &self.allowed,
            _ if !verdict.error.is_empty() => &self.error,
            Decision::Deny => &self.denied,
            Decision::NoOpinion => &self.no_opinion,
        };
        series.total.inc();
        series.duration.observe(duration.as_secs_f64());
    }
}
