//! Records the durations of filters.

use super::metric_registry::MetricRegistry;
use prometheus::{Histogram, HistogramOpts, HistogramVec};
use std::time::Duration;

/// The upper bounds of durations, in seconds.
const DURATIONS: &[f64] = &[0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 10.0, 15.0, 30.0];

/// The time that each filter took before it passed a request on, or refused it.
pub(crate) struct FilterMetrics {
    pub(crate) authentication: FilterDuration,
    pub(crate) audit: FilterDuration,
    pub(crate) impersonation: FilterDuration,
    pub(crate) priority_and_fairness: FilterDuration,
    pub(crate) authorization: FilterDuration,
}

/// The durations of a filter.
pub(crate) struct FilterDuration {
    filter: &'static str,
    durations: Histogram,
}

impl FilterDuration {
    /// Records that the filter has just passed a request on or refused it, also as a span.
    pub(crate) fn passed(&self, took: Duration) {
        self.durations.observe(took.as_secs_f64());
        pintle_telemetry::ended(self.filter, took);
    }
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
        let of = |filter| FilterDuration { filter, durations: durations.with_label_values(&[filter]) };
        Ok(FilterMetrics {
            authentication: of("authentication"),
            audit: of("audit"),
            impersonation: of("constrainedimpersonation"),
            priority_and_fairness: of("priorityandfairness"),
            authorization: of("authorization"),
        })
    }
}
