//! Metrics of webhooks, under the reference's names.

use super::call::CallFailure;
use crate::ConditionMetrics;
use pintle_admission::Operation;
use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, Opts,
    core::{Collector, Desc},
    proto::MetricFamily,
};
use std::time::Duration;

/// Counts and durations of calls. Clones share the counters.
#[derive(Clone)]
pub struct WebhookMetrics {
    durations: HistogramVec,
    requests: IntCounterVec,
    rejections: IntCounterVec,
    failed_open: IntCounterVec,
    pub(super) conditions: ConditionMetrics,
}

/// The plugin that calls webhooks, as metrics name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Mutating,
    Validating,
}

impl Step {
    fn label(self) -> &'static str {
        match self {
            Step::Mutating => "admit",
            Step::Validating => "validating",
        }
    }
}

const BUCKETS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// Webhooks choose the codes of refusals, and each code is a time series.
const MAX_CODE: u16 = 600;

impl WebhookMetrics {
    /// New metrics, all zero; those of match conditions are shared with policies and not collected here.
    ///
    /// # Errors
    /// When a metric's name is invalid, which tests would reveal.
    pub fn new(conditions: ConditionMetrics) -> Result<WebhookMetrics, prometheus::Error> {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            IntCounterVec::new(Opts::new(format!("apiserver_admission_webhook_{name}"), help), labels)
        };
        Ok(WebhookMetrics {
            durations: HistogramVec::new(
                HistogramOpts::new(
                    "apiserver_admission_webhook_admission_duration_seconds",
                    "How long admission webhooks took, in seconds, by webhook, operation and type of admission.",
                )
                .buckets(BUCKETS.to_vec()),
                &["name", "type", "operation", "rejected"],
            )?,
            requests: counter(
                "request_total",
                "Calls of admission webhooks, by webhook, type, operation, HTTP code (600 for greater ones) and whether the \
                 request was rejected.",
                &["name", "type", "operation", "code", "rejected"],
            )?,
            rejections: counter(
                "rejection_count",
                "Requests that admission webhooks rejected, by webhook, type, operation, code, and the kind of error if the \
                 call failed.",
                &["name", "type", "operation", "error_type", "rejection_code"],
            )?,
            failed_open: counter(
                "fail_open_count",
                "Calls of admission webhooks that failed and were ignored, by webhook and type.",
                &["name", "type"],
            )?,
            conditions,
        })
    }

    /// Records a call and its result.
    pub(super) fn called(
        &self,
        webhook: &str,
        step: Step,
        operation: Operation,
        took: Duration,
        failure: Option<&CallFailure>,
        is_ignored: bool,
    ) {
        let (error_type, code) = match failure {
            None => ("", 200),
            Some(CallFailure::Calling { code, .. }) => ("calling_webhook_error", *code),
            Some(CallFailure::Rejected(status)) => ("no_error", status.code),
            Some(CallFailure::Internal(_)) => ("apiserver_internal_error", 0),
        };
        let is_ignored = is_ignored && matches!(failure, Some(CallFailure::Calling { .. }));
        let rejected = if failure.is_some() && !is_ignored { "true" } else { "false" };
        let code = code.min(MAX_CODE).to_string();
        let (step, operation) = (step.label(), operation.as_str());
        if rejected == "true" {
            self.rejections.with_label_values(&[webhook, step, operation, error_type, &code]).inc();
        }
        if is_ignored {
            self.failed_open.with_label_values(&[webhook, step]).inc();
        }
        self.requests.with_label_values(&[webhook, step, operation, &code, rejected]).inc();
        let labels = [webhook, step, operation, rejected];
        self.durations.with_label_values(&labels).observe(took.as_secs_f64());
    }
}

impl Collector for WebhookMetrics {
    fn desc(&self) -> Vec<&Desc> {
        let counters = [&self.requests, &self.rejections, &self.failed_open];
        self.durations.desc().into_iter().chain(counters.into_iter().flat_map(Collector::desc)).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let counters = [&self.requests, &self.rejections, &self.failed_open];
        let counters = counters.into_iter().flat_map(Collector::collect);
        self.durations.collect().into_iter().chain(counters).collect()
    }
}
