//! Metrics of validation rules, under the reference's names.
//!
//! They belong to the process: schemas compile their rules when they are first needed, far from any server.

use super::super::correlated::time_spent;
use prometheus::{
    Histogram, HistogramOpts,
    core::{Collector, Desc},
    exponential_buckets,
    proto::MetricFamily,
};
use std::{sync::LazyLock, time::Duration};

/// The durations of compilations and evaluations. Clones share the counters.
#[derive(Debug, Clone)]
pub struct RuleMetrics {
    compilations: Histogram,
    evaluations: Histogram,
    ratcheting: Histogram,
}

static METRICS: LazyLock<Result<RuleMetrics, prometheus::Error>> = LazyLock::new(|| {
    let histogram = |name: &str, help: &str| {
        Histogram::with_opts(HistogramOpts::new(format!("apiserver_cel_{name}_duration_seconds"), help))
    };
    let ratcheting = HistogramOpts::new(
        "apiextensions_apiserver_validation_ratcheting_seconds",
        "How long updates of custom resources compared new with old values to ratchet errors, in seconds.",
    );
    Ok(RuleMetrics {
        ratcheting: Histogram::with_opts(ratcheting.buckets(exponential_buckets(0.00001, 4.0, 10)?))?,
        compilations: histogram("compilation", "How long the compilation of expressions took, in seconds.")?,
        evaluations: histogram("evaluation", "How long the evaluation of expressions took, in seconds.")?,
    })
});

impl RuleMetrics {
    /// The metrics of the process; `None` if their names were invalid, which tests would reveal.
    pub fn of_process() -> Option<&'static RuleMetrics> {
        METRICS.as_ref().ok()
    }
}

/// Counts a compilation of all rules of a node of a schema.
pub(super) fn compiled(took: Duration) {
    if let Some(metrics) = RuleMetrics::of_process() {
        metrics.compilations.observe(took.as_secs_f64());
    }
}

/// Counts an evaluation of the rules of a value and of the values in it.
pub(super) fn evaluated(took: Duration) {
    if let Some(metrics) = RuleMetrics::of_process() {
        metrics.evaluations.observe(took.as_secs_f64());
    }
}

/// Validates an update, and records the time that its comparisons of new with old values took.
pub(crate) fn ratcheting<T>(validate: impl FnOnce() -> T) -> T {
    let (result, took) = time_spent(validate);
    if let Some(metrics) = RuleMetrics::of_process() {
        metrics.ratcheting.observe(took.as_secs_f64());
    }
    result
}

impl Collector for RuleMetrics {
    fn desc(&self) -> Vec<&Desc> {
        [&self.compilations, &self.evaluations, &self.ratcheting]
            .into_iter()
            .flat_map(Collector::desc)
            .collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        [&self.compilations, &self.evaluations, &self.ratcheting]
            .into_iter()
            .flat_map(Collector::collect)
            .collect()
    }
}
