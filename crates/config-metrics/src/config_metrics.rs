//! Defines [`ConfigMetrics`].

use crate::content_hash;
use jiff::Timestamp;
use prometheus::{GaugeVec, IntCounterVec, Opts, core::Collector};

/// The metrics of one configuration.
#[derive(Clone)]
pub struct ConfigMetrics {
    /// The hash of the server's identity.
    server: String,
    reloads: IntCounterVec,
    last_reload: GaugeVec,
    last_config: GaugeVec,
}

impl ConfigMetrics {
    /// The metrics `apiserver_<subsystem>_config_controller_…` of a configuration, which help texts name `subject`, as in
    /// "the authorization configuration". `api_server_id` identifies the server within its cluster; `labels` tell this
    /// configuration from others of the subsystem.
    ///
    /// # Errors
    /// When the name of the subsystem or of a label is invalid.
    pub fn new(
        subsystem: &str,
        subject: &str,
        api_server_id: &str,
        labels: &[(&str, &str)],
    ) -> Result<ConfigMetrics, prometheus::Error> {
        let opts = |name: &str, help: String| {
            let opts = Opts::new(format!("apiserver_{subsystem}_config_controller_{name}"), help);
            labels.iter().fold(opts, |opts, (label, value)| opts.const_label(*label, *value))
        };
        Ok(ConfigMetrics {
            server: content_hash(api_server_id.as_bytes()),
            reloads: IntCounterVec::new(
                opts("automatic_reloads_total", format!("How often {subject} was read again, by outcome.")),
                &["status", "apiserver_id_hash"],
            )?,
            last_reload: GaugeVec::new(
                opts(
                    "automatic_reload_last_timestamp_seconds",
                    format!("When {subject} was last read again, by outcome."),
                ),
                &["status", "apiserver_id_hash"],
            )?,
            last_config: GaugeVec::new(
                opts("last_config_info", format!("The hash of {subject} in force; always 1.")),
                &["apiserver_id_hash", "hash"],
            )?,
        })
    }

    /// The collectors to register.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![
            Box::new(self.reloads.clone()),
            Box::new(self.last_reload.clone()),
            Box::new(self.last_config.clone()),
        ]
    }

    /// Records a reload: the hash of the configuration that is in force now, or `None` if it has failed.
    pub fn reloaded(&self, hash: Option<&str>) {
        let labels = [if hash.is_some() { "success" } else { "failure" }, &self.server];
        self.reloads.with_label_values(&labels).inc();
        self.last_reload.with_label_values(&labels).set(Timestamp::now().as_duration().as_secs_f64());
        if let Some(hash) = hash {
            self.in_force(hash);
        }
    }

    /// Records the hash of the configuration in force.
    pub fn in_force(&self, hash: &str) {
        self.last_config.reset();
        self.last_config.with_label_values(&[&self.server, hash]).set(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::{Registry, TextEncoder};

    #[test]
    fn the_configuration_in_force_replaces_the_one_before_of_the_same_labels() {
        let registry = Registry::new();
        let metrics = ["a", "b"].map(|name| {
            let metrics =
                ConfigMetrics::new("x", "the configuration", "server", &[("plugin", name)]).unwrap();
            for collector in metrics.collectors() {
                registry.register(collector).unwrap();
            }
            metrics
        });
        metrics[0].in_force("sha256:1");
        metrics[1].in_force("sha256:2");
        metrics[0].reloaded(Some("sha256:3"));
        metrics[0].reloaded(None);
        metrics[0].reloaded(None);
        let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        let server = content_hash(b"server");
        let line = |name: &str, hash: &str, plugin: &str, value: &str| {
            format!(
                "apiserver_x_config_controller_{name}{{apiserver_id_hash=\"{server}\",{hash}plugin=\"{plugin}\"{value}"
            )
        };
        let expected = [
            (line("last_config_info", "hash=\"sha256:3\",", "a", "} 1\n"), true),
            (line("last_config_info", "hash=\"sha256:2\",", "b", "} 1\n"), true),
            (line("last_config_info", "hash=\"sha256:1\",", "a", "} 1\n"), false),
            (line("automatic_reloads_total", "", "a", ",status=\"failure\"} 2\n"), true),
            (line("automatic_reloads_total", "", "a", ",status=\"success\"} 1\n"), true),
        ];
        for (line, is_expected) in expected {
            assert_eq!(text.contains(&line), is_expected, "{line}\n{text}");
        }
    }
}
