//! Metrics of authorization, under Kubernetes' names (<https://kubernetes.io/docs/reference/instrumentation/metrics/>).

use jiff::Timestamp;
use pintle_auth::authz::Decision;
use pintle_webhook::AttemptResult;
use prometheus::{
    GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, Opts, core::Collector, exponential_buckets,
};
use sha2::{Digest, Sha256};
use std::{
    fmt::Write,
    sync::Arc,
    time::{Duration, Instant},
};

/// The metrics of a server's authorizers.
pub struct AuthorizationMetrics {
    server_hash: String,
    decisions: IntCounterVec,
    webhook_evaluations: IntCounterVec,
    webhook_duration: HistogramVec,
    webhook_fail_open: IntCounterVec,
    match_errors: IntCounterVec,
    match_exclusions: IntCounterVec,
    match_seconds: HistogramVec,
    reloads: IntCounterVec,
    last_reload: GaugeVec,
    last_config: GaugeVec,
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
        let gauge = |name: &str, help: &str, labels: &[&str]| {
            GaugeVec::new(Opts::new(format!("apiserver_authorization_{name}"), help), labels)
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
            server_hash: content_hash(api_server_id.as_bytes()),
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
            reloads: counter(
                "config_controller_automatic_reloads_total",
                "How often the authorization configuration was read again, by outcome.",
                &["status", "apiserver_id_hash"],
            )?,
            last_reload: gauge(
                "config_controller_automatic_reload_last_timestamp_seconds",
                "When the authorization configuration was last read again, by outcome.",
                &["status", "apiserver_id_hash"],
            )?,
            last_config: gauge(
                "config_controller_last_config_info",
                "The authorization configuration in force, by its hash; always 1.",
                &["apiserver_id_hash", "hash"],
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
        vec![
            Box::new(self.decisions.clone()),
            Box::new(self.webhook_evaluations.clone()),
            Box::new(self.webhook_duration.clone()),
            Box::new(self.webhook_fail_open.clone()),
            Box::new(self.match_errors.clone()),
            Box::new(self.match_exclusions.clone()),
            Box::new(self.match_seconds.clone()),
            Box::new(self.reloads.clone()),
            Box::new(self.last_reload.clone()),
            Box::new(self.last_config.clone()),
            Box::new(self.node.graph_actions.clone()),
        ]
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

    /// Records a reload, and the hash of the configuration in force if it succeeded.
    pub(crate) fn reloaded(&self, config_hash: Option<&str>) {
        let status = if config_hash.is_some() { "success" } else { "failure" };
        self.reloads.with_label_values(&[status, &self.server_hash]).inc();
        let now = Timestamp::now().as_duration().as_secs_f64();
        self.last_reload.with_label_values(&[status, &self.server_hash]).set(now);
        if let Some(hash) = config_hash {
            self.config_in_force(hash);
        }
    }

    /// Records the hash of the configuration in force.
    pub(crate) fn config_in_force(&self, hash: &str) {
        self.last_config.reset();
        self.last_config.with_label_values(&[&self.server_hash, hash]).set(1.0);
    }
}

/// The hash of a content as `sha256:…`; "" for an empty content.
pub(crate) fn content_hash(content: &[u8]) -> String {
    if content.is_empty() {
        return String::new();
    }
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(content) {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
