//! Metrics of mutating policies, under the reference's names.

use super::patch::MutationError;
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
/// In seconds.
const BUCKETS: [f64; 5] = [0.000_000_5, 0.001, 0.01, 0.1, 1.0];

impl MutationMetrics {
    /// New metrics, all zero.
    ///
    /// # Errors
    /// When a metric's name is invalid, which tests would reveal.
    pub fn new() -> Result<MutationMetrics, prometheus::Error> {
        let name = |name: &str| format!("apiserver_mutating_admission_policy_{name}");
        let checks = "Mutations of admission policies, by policy, binding and error.";
        let durations = "How long mutations of admission policies took, by policy, binding and error.";
        let durations = HistogramOpts::new(name("check_duration_seconds"), durations);
        Ok(MutationMetrics {
            checks: IntCounterVec::new(Opts::new(name("check_total"), checks), &LABELS)?,
            durations: HistogramVec::new(durations.buckets(BUCKETS.to_vec()), &LABELS)?,
        })
    }

    /// Counts a mutation and its result.
    pub(super) fn observe(
        &self,
        policy: &str,
        binding: &str,
        took: Duration,
        failure: Option<&MutationError>,
    ) {
        let labels = [policy, binding, failure.map_or("no_error", error_type)];
        self.checks.with_label_values(&labels).inc();
        self.durations.with_label_values(&labels).observe(took.as_secs_f64());
    }
}

fn error_type(failure: &MutationError) -> &'static str {
    match failure {
        MutationError::Failed(why) if why.starts_with("compilation") => "compile_error",
        MutationError::Failed(why)
            if why.starts_with("validation failed due to running out of cost budget") =>
        {
            "out_of_budget"
        }
        MutationError::Failed(_) | MutationError::Refused(_) | MutationError::Undecided => "invalid_error",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_are_counted_by_their_error() {
        let metrics = MutationMetrics::new().unwrap();
        let failed = |why: &str| MutationError::Failed(why.to_owned());
        metrics.observe("p", "b", Duration::ZERO, None);
        metrics.observe("p", "b", Duration::ZERO, Some(&failed("compilation error: …")));
        metrics.observe("p", "b", Duration::ZERO, Some(&failed("JSON Patch: …")));
        let families = metrics.collect();
        let mut errors: Vec<&str> =
            families[0].get_metric().iter().map(|metric| metric.get_label()[0].value()).collect();
        errors.sort_unstable();
        assert_eq!(errors, ["compile_error", "invalid_error", "no_error"]);
    }
}
