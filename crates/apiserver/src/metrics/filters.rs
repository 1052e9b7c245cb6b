//! Records the durations of filters.

use super::metric_registry::MetricRegistry;
use prometheus::{Histogram, HistogramOpts, HistogramVec};

/// The upper bounds of durations, in seconds.
const DURATIONS: &[f64] = &[0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 10.0, 15.0, 30.0];

/// The time that each filter took before it passed a request on, or refused it.
pub(crate) struct FilterMetrics {
    pub(crate) authentication: Histogram,
    pub(crate) audit: Histogram,
    pub(crate) impersonation: Histogram,
    pub(crate) priority_and_fairness: Histogram,
    pub(crate) authorization: Histogram,
}

impl FilterMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    /// When a metric of the same name is registered already.
    pub(super) fn register(registry: &MetricRegistry) -> Result<FilterMetrics, prometheus::Error> {
        let options = HistogramOpts::new(
            "apiserver_request_filter_duration_seconds",
            "How long filters took, by filter.",
        );
        let durations = HistogramVec::new(options.buckets(DURATIONS.to_vec()), &["filter"])?;
        registry.register(Box::new(durations.clone()))?;
        let of = |filter: &str| durations.with_label_values(&[filter]);
        Ok(FilterMetrics {
            authentication: of("authentication"),
            audit: of("audit"),
            impersonation: of("constrainedimpersonation"),
            priority_and_fairness: of("priorityandfairness"),
            authorization: of("authorization"),
        })
    }
}
