//! Metrics of conversions, under the reference's names.

use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, Opts,
    core::{Collector, Desc},
    proto::MetricFamily,
};
use std::time::Duration;

/// The reason of a failed webhook conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureType {
    Call,
    MalformedResponse,
    PartialResponse,
    InvalidConvertedObject,
}

impl FailureType {
    fn label(self) -> &'static str {
        match self {
            FailureType::Call => "conversion_webhook_call_failure",
            FailureType::MalformedResponse => "conversion_webhook_malformed_response_failure",
            FailureType::PartialResponse => "conversion_webhook_partial_response_failure",
            FailureType::InvalidConvertedObject => "conversion_webhook_invalid_converted_object_failure",
        }
    }
}

/// Counts and durations of webhook conversions. Clones share the counters.
#[derive(Clone)]
pub(crate) struct ConversionMetrics {
    requests: IntCounterVec,
    durations: HistogramVec,
    by_definition: HistogramVec,
}

impl ConversionMetrics {
    /// # Errors
    /// When a metric name is invalid, which tests would reveal.
    pub(crate) fn new() -> Result<ConversionMetrics, prometheus::Error> {
        const RESULT: [&str; 2] = ["result", "failure_type"];
        let buckets =
            vec![0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];
        Ok(ConversionMetrics {
            requests: IntCounterVec::new(
                Opts::new(
                    "apiserver_conversion_webhook_request_total",
                    "Calls of conversion webhooks by how they ended.",
                ),
                &RESULT,
            )?,
            durations: HistogramVec::new(
                HistogramOpts::new(
                    "apiserver_conversion_webhook_duration_seconds",
                    "How long calls of conversion webhooks took.",
                )
                .buckets(buckets),
                &RESULT,
            )?,
            by_definition: HistogramVec::new(
                HistogramOpts::new(
                    "apiserver_crd_conversion_webhook_duration_seconds",
                    "How long conversions by webhook took, by definition and versions.",
                )
                .buckets(prometheus::exponential_buckets(0.001, 2.0, 15)?),
                &["crd_name", "from_version", "to_version", "succeeded"],
            )?,
        })
    }

    pub(super) fn called(&self, took: Duration, failure: Option<FailureType>) {
        let labels = match failure {
            None => ["success", ""],
            Some(failure) => ["failure", failure.label()],
        };
        self.requests.with_label_values(&labels).inc();
        self.durations.with_label_values(&labels).observe(took.as_secs_f64());
    }

    pub(super) fn converted(&self, definition: &str, from: &str, to: &str, succeeded: bool, took: Duration) {
        let succeeded = if succeeded { "true" } else { "false" };
        let labels = [definition, from, to, succeeded];
        self.by_definition.with_label_values(&labels).observe(took.as_secs_f64());
    }
}

impl Collector for ConversionMetrics {
    fn desc(&self) -> Vec<&Desc> {
        [self.requests.desc(), self.durations.desc(), self.by_definition.desc()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let all = [self.requests.collect(), self.durations.collect(), self.by_definition.collect()];
        all.into_iter().flatten().collect()
    }
}
