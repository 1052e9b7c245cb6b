//! Metrics of validating policies, under the reference's names.

use super::decision::{Decision, Verdict};
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
/// In seconds.
const BUCKETS: [f64; 5] = [0.000_000_5, 0.001, 0.01, 0.1, 1.0];

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
                    "Validations of admission policies, by policy, binding, error and action.",
                ),
                &LABELS,
            )?,
            durations: HistogramVec::new(
                HistogramOpts::new(
                    name("check_duration_seconds"),
                    "How long validations of admission policies took, by policy, binding, error and action.",
                )
                .buckets(BUCKETS.to_vec()),
                &LABELS,
            )?,
        })
    }

    /// Counts a decision and the action that follows from it.
    pub(super) fn observe(&self, policy: &str, binding: &str, decision: &Decision, action: &str) {
        let labels = [policy, binding, error_type(decision), action];
        self.checks.with_label_values(&labels).inc();
        self.durations.with_label_values(&labels).observe(decision.elapsed.as_secs_f64());
    }
}

fn error_type(decision: &Decision) -> &'static str {
    let message = &decision.message;
    if decision.verdict == Verdict::Holds {
        "no_error"
    } else if message.starts_with("compilation") {
        "compile_error"
    } else if message.starts_with("validation failed due to running out of cost budget") {
        "out_of_budget"
    } else {
        "invalid_error"
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
