//! Metrics of mutating policies, under the reference's names.

use super::patch::MutationError;
use crate::policies::failure_metrics::{BUCKETS, error_type};
use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, Opts,
    core::{Collector, Desc},
    proto::MetricFamily,
};
use std::time::Duration;

/// Counts and durations of mutations. Clones share the counters.
#[derive(Clone)]
pub struct MutationMetrics {
    checks: IntCounterVec,
    durations: HistogramVec,
}

const LABELS: [&str; 3] = ["policy", "policy_binding", "error_type"];

impl MutationMetrics {
    /// New metrics, all zero.
    ///
    /// # Errors
    /// When a metric's name is invalid, which tests would reveal.
    pub fn new() -> Result<MutationMetrics, prometheus::Error> {
        Ok(MutationMetrics {
            checks: IntCounterVec::new(
                Opts::new(
                    "apiserver_mutating_admission_policy_check_total",
                    "Decisions of mutating admission policies, by policy and binding.",
                ),
                &LABELS,
            )?,
            durations: HistogramVec::new(
                HistogramOpts::new(
                    "apiserver_mutating_admission_policy_check_duration_seconds",
                    "How long the expressions of mutating admission policies took, in seconds.",
                )
                .buckets(BUCKETS.to_vec()),
                &LABELS,
            )?,
        })
    }

    /// Counts a mutation and its result.
    pub(super) fn observe<T>(
        &self,
        policy: &str,
        binding: &str,
        result: &Result<T, MutationError>,
        elapsed: Duration,
    ) {
        let error = match result {
            Ok(_) => None,
            Err(MutationError::Failed(message)) => Some(message.as_str()),
            Err(MutationError::Refused(status)) => Some(status.message.as_str()),
            Err(MutationError::Undecided) => return,
        };
        let labels = [policy, binding, error_type(error)];
        self.checks.with_label_values(&labels).inc();
        self.durations.with_label_values(&labels).observe(elapsed.as_secs_f64());
    }
}

impl Collector for MutationMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.checks.desc().into_iter().chain(self.durations.desc()).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.checks.collect().into_iter().chain(self.durations.collect()).collect()
    }
}
