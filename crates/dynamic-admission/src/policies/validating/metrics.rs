//! Metrics of validating policies, under the reference's names.

use super::decision::{Decision, Verdict};
use crate::policies::failure_metrics::{BUCKETS, error_type};
use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, Opts,
    core::{Collector, Desc},
    proto::MetricFamily,
};

/// Counts and durations of the validations that did not simply hold. Clones share the counters.
#[derive(Clone)]
pub struct PolicyMetrics {
    checks: IntCounterVec,
    durations: HistogramVec,
}

const LABELS: [&str; 4] = ["policy", "policy_binding", "error_type", "enforcement_action"];

impl PolicyMetrics {
    /// New metrics, all zero.
    ///
    /// # Errors
    /// When a metric's name is invalid, which tests would reveal.
    pub fn new() -> Result<PolicyMetrics, prometheus::Error> {
        let name = |name: &str| format!("apiserver_validating_admission_policy_{name}");
        Ok(PolicyMetrics {
            checks: IntCounterVec::new(
                Opts::new(
                    name("check_total"),
                    "Decisions of validating admission policies, by policy, binding and the action that was taken.",
                ),
                &LABELS,
            )?,
            durations: HistogramVec::new(
                HistogramOpts::new(
                    name("check_duration_seconds"),
                    "How long the expressions of validating admission policies took, in seconds.",
                )
                .buckets(BUCKETS.to_vec()),
                &LABELS,
            )?,
        })
    }

    /// Counts a decision and the action that follows from it.
    pub(super) fn observe(&self, policy: &str, binding: &str, decision: &Decision, action: &str) {
        let error = (decision.verdict != Verdict::Holds).then_some(&*decision.message);
        let labels = [policy, binding, error_type(error), action];
        self.checks.with_label_values(&labels).inc();
        self.durations.with_label_values(&labels).observe(decision.elapsed.as_secs_f64());
    }
}

impl Collector for PolicyMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.checks.desc().into_iter().chain(self.durations.desc()).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.checks.collect().into_iter().chain(self.durations.collect()).collect()
    }
}
