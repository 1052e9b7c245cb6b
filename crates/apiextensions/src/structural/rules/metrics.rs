//! Metrics of validation rules, under the reference's names.
//!
//! They belong to the process: schemas compile their rules when they are first needed, far from any server.

use prometheus::{
    Histogram, HistogramOpts,
    core::{Collector, Desc},
    proto::MetricFamily,
};
use std::{sync::LazyLock, time::Duration};

/// The durations of compilations and evaluations. Clones share the counters.
#[derive(Debug, Clone)]
pub struct RuleMetrics {
    compilations: Histogram,
    evaluations: Histogram,
}

static METRICS: LazyLock<Result<RuleMetrics, prometheus::Error>> = LazyLock::new(|| {
    let histogram = |name: &str, help: &str| {
        Histogram::with_opts(HistogramOpts::new(format!("apiserver_cel_{name}_duration_seconds"), help))
    };
    Ok(RuleMetrics {
        compilations: histogram("compilation", "[BETA] CEL compilation time in seconds.")?,
        evaluations: histogram("evaluation", "[BETA] CEL evaluation time in seconds.")?,
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

impl Collector for RuleMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.compilations.desc().into_iter().chain(self.evaluations.desc()).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.compilations.collect().into_iter().chain(self.evaluations.collect()).collect()
    }
}
