//! Metrics of issuers, under Kubernetes' names (<https://kubernetes.io/docs/reference/instrumentation/metrics/>).

use pintle_config_metrics::{ConfigMetrics, content_hash};
use pintle_feature_gates::{Gate, enabled};
use prometheus::{GaugeVec, HistogramOpts, HistogramVec, Opts, core::Collector};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The metrics of issuers and of the configuration file. Issuers are labelled by hashes of their URLs.
#[derive(Clone)]
pub struct JwtMetrics {
    server: String,
    latency: HistogramVec,
    fetched: GaugeVec,
    key_sets: GaugeVec,
    config: ConfigMetrics,
}

impl JwtMetrics {
    /// New metrics, all zero; `api_server_id` identifies the server within its cluster.
    ///
    /// # Errors
    /// When a metric's name is invalid, which the names here are not.
    pub fn new(api_server_id: &str) -> Result<JwtMetrics, prometheus::Error> {
        let gauge = |name: &str, help: &str, labels: &[&str]| GaugeVec::new(Opts::new(name, help), labels);
        let latency = HistogramOpts::new(
            "apiserver_authentication_jwt_authenticator_latency_seconds",
            "How long an issuer's tokens took that were not in the cache, by result.",
        )
        .buckets(vec![0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]);
        Ok(JwtMetrics {
            server: content_hash(api_server_id.as_bytes()),
            latency: HistogramVec::new(latency, &["result", "jwt_issuer_hash"])?,
            fetched: gauge(
                "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds",
                "When an issuer's keys were fetched last, by result.",
                &["result", "jwt_issuer_hash", "apiserver_id_hash"],
            )?,
            key_sets: gauge(
                "apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info",
                "Which keys of an issuer were fetched last.",
                &["jwt_issuer_hash", "apiserver_id_hash", "hash"],
            )?,
            config: ConfigMetrics::new(
                "authentication",
                "the authentication configuration",
                api_server_id,
                &[],
            )?,
        })
    }

    /// The collectors to register.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        let mut collectors: Vec<Box<dyn Collector>> = vec![
            Box::new(self.latency.clone()),
            Box::new(self.fetched.clone()),
            Box::new(self.key_sets.clone()),
        ];
        collectors.extend(self.config.collectors());
        collectors
    }

    pub(crate) fn authenticated(&self, issuer_hash: &str, is_good: bool, took: Duration) {
        let result = if is_good { "success" } else { "failure" };
        self.latency.with_label_values(&[result, issuer_hash]).observe(took.as_secs_f64());
    }

    /// Records a fetch of keys, successful or not. `before` is the hash of the previous keys.
    pub(crate) fn keys_fetched(&self, issuer_hash: &str, keys: Option<&str>, before: &str) {
        if !enabled(Gate::StructuredAuthenticationConfigurationJWKSMetrics) {
            return;
        }
        let result = if keys.is_some() { "success" } else { "failure" };
        self.fetched.with_label_values(&[result, issuer_hash, &self.server]).set(now());
        if let Some(keys) = keys.filter(|keys| *keys != before) {
            self.key_sets.with_label_values(&[issuer_hash, &self.server, keys]).set(1.0);
            // There may be no previous keys.
            let _ = self.key_sets.remove_label_values(&[issuer_hash, &self.server, before]);
        }
    }

    /// Removes the series of an issuer that is not used any more.
    pub(crate) fn forget(&self, issuer_hash: &str, keys: &str) {
        // A series may never have existed.
        let _ = self.key_sets.remove_label_values(&[issuer_hash, &self.server, keys]);
        for result in ["success", "failure"] {
            let _ = self.fetched.remove_label_values(&[result, issuer_hash, &self.server]);
        }
    }

    /// Records a reload: the configuration that is in force now, or `None` if it has failed.
    pub fn reloaded(&self, content: Option<&[u8]>) {
        self.config.reloaded(content.map(content_hash).as_deref());
    }

    /// Records the configuration in force.
    pub fn config_in_force(&self, content: &[u8]) {
        self.config.in_force(&content_hash(content));
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_feature_gates::{FeatureGates, testing::override_gates};

    #[test]
    fn the_keys_of_issuers_are_told_with_their_gate_alone() {
        let series = |is_open: bool| {
            let gate = Gate::StructuredAuthenticationConfigurationJWKSMetrics;
            let _gates = override_gates(&FeatureGates::default().with(gate, is_open));
            let metrics = JwtMetrics::new("server").unwrap();
            metrics.keys_fetched("sha256:issuer", Some("sha256:keys"), "");
            let series = |gauge: &GaugeVec| -> usize {
                gauge.collect().iter().map(|family| family.get_metric().len()).sum()
            };
            (series(&metrics.fetched), series(&metrics.key_sets))
        };
        assert_eq!(series(true), (1, 1));
        assert_eq!(series(false), (0, 0));
    }
}
