//! Metrics of authorization, under Kubernetes' names (<https://kubernetes.io/docs/reference/instrumentation/metrics/>).

use pintle_auth::authz::Decision;
use pintle_config_metrics::ConfigMetrics;
use pintle_webhook::AttemptResult;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, core::Collector, exponential_buckets};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// The metrics of a server's authorizers.
pub struct AuthorizationMetrics {
    decisions: IntCounterVec,
    webhook_evaluations: IntCounterVec,
    webhook_duration: HistogramVec,
    webhook_fail_open: IntCounterVec,
    match_errors: IntCounterVec,
    match_exclusions: IntCounterVec,
    match_seconds: HistogramVec,
    config: ConfigMetrics,
    node: Arc<NodeMetrics>,
}

/// The metrics of the node authorizer.
pub struct NodeMetrics {
    graph_actions: HistogramVec,
}

impl NodeMetrics {
    /// Runs an operation on the graph and records its duration.
    pub(crate) fn timed<T>(&self, operation: &str, action: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let outcome = action();
        self.graph_actions.with_label_values(&[operation]).observe(start.elapsed().as_secs_f64());
        outcome
    }

    /// The number of recorded operations.
    #[cfg(test)]
    pub(crate) fn graph_actions(&self, operation: &str) -> u64 {
        self.graph_actions.with_label_values(&[operation]).get_sample_count()
    }
}

impl AuthorizationMetrics {
    /// New metrics, all zero; `api_server_id` identifies the server within its cluster.
    ///
    /// # Errors
    /// When a metric's name is invalid, which the names here are not.
    pub fn new(api_server_id: &str) -> Result<AuthorizationMetrics, prometheus::Error> {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            IntCounterVec::new(Opts::new(format!("apiserver_authorization_{name}"), help), labels)
        };
        let match_seconds = HistogramOpts::new(
            "apiserver_authorization_match_condition_evaluation_seconds",
            "How long match conditions took, by type and name of the authorizer.",
        );
        let node = HistogramOpts::new(
            "node_authorizer_graph_actions_duration_seconds",
            "How long changes of the node authorizer's graph took.",
        );
        Ok(AuthorizationMetrics {
            decisions: counter(
                "decisions_total",
                "Decisions that ended the chain of authorizers, by type, name and decision.",
                &["type", "name", "decision"],
            )?,
            webhook_evaluations: counter(
                "webhook_evaluations_total",
                "Calls of authorization webhooks, by outcome.",
                &["name", "result"],
            )?,
            webhook_duration: HistogramVec::new(
                HistogramOpts::new(
                    "apiserver_authorization_webhook_duration_seconds",
                    "How long calls of authorization webhooks took, by outcome.",
                ),
                &["name", "result"],
            )?,
            webhook_fail_open: counter(
                "webhook_evaluations_fail_open_total",
                "Requests on which a webhook that failed has no opinion.",
                &["name", "result"],
            )?,
            match_errors: counter(
                "match_condition_evaluation_errors_total",
                "Evaluations of match conditions that failed.",
                &["type", "name"],
            )?,
            match_exclusions: counter(
                "match_condition_exclusions_total",
                "Requests about which an authorizer was not asked because of its match conditions.",
                &["type", "name"],
            )?,
            match_seconds: HistogramVec::new(
                match_seconds.buckets(vec![0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25]),
                &["type", "name"],
            )?,
            config: ConfigMetrics::new(
                "authorization",
                "the authorization configuration",
                api_server_id,
                &[],
            )?,
            node: Arc::new(NodeMetrics {
                graph_actions: HistogramVec::new(
                    node.buckets(exponential_buckets(0.0001, 2.0, 12)?),
                    &["operation"],
                )?,
            }),
        })
    }

    /// The collectors to register.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        let mut collectors: Vec<Box<dyn Collector>> = vec![
            Box::new(self.decisions.clone()),
            Box::new(self.webhook_evaluations.clone()),
            Box::new(self.webhook_duration.clone()),
            Box::new(self.webhook_fail_open.clone()),
            Box::new(self.match_errors.clone()),
            Box::new(self.match_exclusions.clone()),
            Box::new(self.match_seconds.clone()),
            Box::new(self.node.graph_actions.clone()),
        ];
        collectors.extend(self.config.collectors());
        collectors
    }

    /// The metrics of the node authorizer.
    pub fn node(&self) -> &Arc<NodeMetrics> {
        &self.node
    }

    pub(crate) fn decided(&self, authorizer_type: &str, name: &str, decision: Decision) {
        let decision = match decision {
            Decision::Allow => "allowed",
            Decision::Deny => "denied",
            Decision::NoOpinion => return,
        };
        self.decisions.with_label_values(&[authorizer_type, name, decision]).inc();
    }

    pub(crate) fn webhook_called(&self, name: &str, result: AttemptResult, duration: Duration) {
        let labels = [name, result.as_str()];
        self.webhook_evaluations.with_label_values(&labels).inc();
        self.webhook_duration.with_label_values(&labels).observe(duration.as_secs_f64());
    }

    pub(crate) fn webhook_failed_open(&self, name: &str, result: AttemptResult) {
        self.webhook_fail_open.with_label_values(&[name, result.as_str()]).inc();
    }

    /// Records an evaluation of a webhook's match conditions: matched, excluded or failed.
    pub(crate) fn matched(&self, name: &str, outcome: Result<bool, ()>, duration: Duration) {
        let labels = ["Webhook", name];
        match outcome {
            Ok(true) => {}
            Ok(false) => self.match_exclusions.with_label_values(&labels).inc(),
            Err(()) => self.match_errors.with_label_values(&labels).inc(),
        }
        self.match_seconds.with_label_values(&labels).observe(duration.as_secs_f64());
    }

    /// The metrics of the configuration file.
    pub(crate) fn config(&self) -> &ConfigMetrics {
        &self.config
    }
}
