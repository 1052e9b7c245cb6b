//! Metrics of match conditions, under the reference's names.

use pintle_admission::Operation;
use pintle_admission_cel::MatchOutcome;
use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, Opts,
    core::{Collector, Desc},
    proto::MetricFamily,
};
use std::time::Duration;

/// Counts and durations of the evaluations of match conditions, of webhooks and policies. Clones share the counters.
#[derive(Clone)]
pub struct ConditionMetrics {
    durations: HistogramVec,
    errors: IntCounterVec,
    exclusions: IntCounterVec,
}

/// The owner of match conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConditionOwner {
    MutatingWebhook,
    ValidatingWebhook,
    /// A policy of either kind: the reference does not tell them apart.
    Policy,
}

impl ConditionOwner {
    /// The labels `kind` and `type`.
    fn labels(self) -> [&'static str; 2] {
        match self {
            ConditionOwner::MutatingWebhook => ["webhook", "admit"],
            ConditionOwner::ValidatingWebhook => ["webhook", "validate"],
            ConditionOwner::Policy => ["policy", "validate"],
        }
    }
}

const LABELS: [&str; 4] = ["name", "kind", "type", "operation"];
/// The upper bounds of durations, in seconds.
const BUCKETS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];

impl ConditionMetrics {
    /// New metrics, all zero.
    ///
    /// # Errors
    /// When a metric's name is invalid, which tests would reveal.
    pub fn new() -> Result<ConditionMetrics, prometheus::Error> {
        let name = |name: &str| format!("apiserver_admission_match_condition_{name}");
        Ok(ConditionMetrics {
            durations: HistogramVec::new(
                HistogramOpts::new(
                    name("evaluation_seconds"),
                    "How long the match conditions of a webhook or policy took, in seconds, by its name, its kind, the \
                     operation and the type of admission.",
                )
                .buckets(BUCKETS.to_vec()),
                &LABELS,
            )?,
            errors: IntCounterVec::new(
                Opts::new(
                    name("evaluation_errors_total"),
                    "Match conditions of webhooks and policies that failed.",
                ),
                &LABELS,
            )?,
            exclusions: IntCounterVec::new(
                Opts::new(
                    name("exclusions_total"),
                    "Requests that match conditions excluded from a webhook or policy.",
                ),
                &LABELS,
            )?,
        })
    }

    /// Records an evaluation of the conditions of a webhook or policy.
    pub(crate) fn observe(
        &self,
        name: &str,
        owner: ConditionOwner,
        operation: Operation,
        outcome: &MatchOutcome,
        elapsed: Duration,
    ) {
        let [kind, step] = owner.labels();
        let labels = [name, kind, step, operation.as_str()];
        self.durations.with_label_values(&labels).observe(elapsed.as_secs_f64());
        if let MatchOutcome::Fails { failed, .. } | MatchOutcome::Error { failed, .. } = outcome
            && *failed > 0
        {
            self.errors.with_label_values(&labels).inc_by(*failed);
        }
    }

    /// Counts a webhook that is not called because its conditions do not hold.
    pub(crate) fn excluded(&self, name: &str, owner: ConditionOwner, operation: Operation) {
        let [kind, step] = owner.labels();
        self.exclusions.with_label_values(&[name, kind, step, operation.as_str()]).inc();
    }
}

impl Collector for ConditionMetrics {
    fn desc(&self) -> Vec<&Desc> {
        let counters = [&self.errors, &self.exclusions];
        self.durations.desc().into_iter().chain(counters.into_iter().flat_map(Collector::desc)).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let counters = [&self.errors, &self.exclusions];
        let counters = counters.into_iter().flat_map(Collector::collect);
        self.durations.collect().into_iter().chain(counters).collect()
    }
}
