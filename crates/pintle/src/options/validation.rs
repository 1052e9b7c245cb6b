//! Validates all options, and tells all errors at once as kube-apiserver does.
//!
//! It looks for errors in steps, and ends after the first step that has any. The last step is the validation, which collects
//! the errors of all groups of options in a fixed order. The files that options name are read later, except for those that
//! belong to a step.

use super::{LoggingOptions, Options, logging::LoggingFeatures};
use crate::enablement;
use pintle_feature_gates::Gate;
use pintle_machinery::status::aggregate;

impl Options {
    /// Validates the options.
    ///
    /// # Errors
    /// All errors of the first step that has any, in kube-apiserver's words and order.
    pub fn validate(&self) -> Result<(), String> {
        match self.errors().into_iter().find(|step| !step.is_empty()) {
            Some(errors) => Err(aggregate(errors.into_iter())),
            None => Ok(()),
        }
    }

    /// The options of the log; the default ones unless the steps without errors include theirs.
    pub fn valid_logging(&self) -> LoggingOptions {
        match self.errors().iter().take(2).all(Vec::is_empty) {
            true => self.logging.clone(),
            false => LoggingOptions::default(),
        }
    }

    /// The errors of each step.
    pub(crate) fn errors(&self) -> Vec<Vec<String>> {
        let mut refused = self.refused.clone();
        let logging_features = LoggingFeatures {
            alpha_options: self.features.is_open(Gate::LoggingAlphaOptions),
            beta_options: self.features.is_open(Gate::LoggingBetaOptions),
        };
        let accounts = &self.service_accounts;
        let step = |error: Option<String>| error.into_iter().collect::<Vec<String>>();
        let mut steps = vec![
            step(self.features.settings().err()),
            self.logging.errors(logging_features, &mut refused),
            step(self.service_cidrs().err()),
            refused.take(&["service-account-max-token-expiration"]),
            step(accounts.expiration_error().map(str::to_owned)),
            step(accounts.signing_key_error()),
            refused.take(&["watch-cache-sizes"]),
        ];
        let mut errors = refused.take(&[
            "livez-grace-period",
            "max-requests-inflight",
            "max-mutating-requests-inflight",
            "request-timeout",
        ]);
        errors.extend(self.serving.goaway_error());
        errors.extend(refused.take(&[
            "min-request-timeout",
            "storage-initialization-timeout",
            "shutdown-delay-duration",
            "shutdown-watch-termination-grace-period",
        ]));
        errors.extend(self.serving.header_errors());
        errors.extend(self.features.errors());
        errors.extend(self.etcd_errors());
        errors.extend(refused.take(&["storage-backend", "etcd-servers-overrides"]));
        if self.encryption_provider_config_automatic_reload && self.encryption_provider_config.is_none() {
            errors.push(
                "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config"
                    .to_owned(),
            );
        }
        errors.extend(refused.take(&["storage-media-type"]));
        errors.extend(self.priority_and_fairness.error(&self.runtime_config));
        errors.extend(refused.take(&["secure-port"]));
        let authentication = &self.authentication;
        errors.extend(authentication.oidc.error(authentication.config_file.is_some()).map(str::to_owned));
        errors.extend(accounts.issuer_errors());
        errors.extend(
            authentication.request_header.errors(self.features.is_open(Gate::RemoteRequestHeaderUID)),
        );
        errors.extend(self.authorization.errors());
        errors.extend(self.audit.errors());
        errors.extend(self.admission.chain_config().flag_errors());
        errors.extend(enablement::error(&self.runtime_config).map(|error| error.to_string()));
        errors.extend(accounts.token_request_error().map(str::to_owned));
        errors.extend(self.metrics.configuration().err().unwrap_or_default());
        errors.extend(self.peers.errors(self.features.is_open(Gate::UnknownVersionInteroperabilityProxy)));
        errors.extend(accounts.signing_endpoint_errors());
        errors.extend(
            refused.take(&["coordinated-leadership-lease-duration", "coordinated-leadership-renew-deadline"]),
        );
        errors.extend(self.leadership.errors());
        errors.extend(self.service_cidr_errors());
        errors.extend(self.management.node_port_errors(&self.service_node_port_range));
        errors.extend(self.family_error());
        errors.extend(refused.take(&["apiserver-count"]));
        // Values that this server refuses and kube-apiserver accepts.
        errors.extend(refused.rest());
        if errors.is_empty() {
            errors.extend(self.service_network().err());
        }
        steps.push(errors);
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn check(change: impl FnOnce(&mut Options), expected: &[&str]) {
        let mut options = Options::default();
        change(&mut options);
        let expected = match expected {
            [] => Ok(()),
            [one] => Err((*one).to_owned()),
            many => Err(format!("[{}]", many.join(", "))),
        };
        assert_eq!(options.validate(), expected);
    }

    #[test]
    fn errors_of_all_groups_are_told_in_the_reference_s_order() {
        check(|_| {}, &[]);
        check(
            |options| {
                options.management.kubernetes_service_node_port = 70_000;
                options.service_cluster_ip_range = "10.0.0.0/24,10.1.0.0/24,fd00::/112".to_owned();
                options.leadership.timers.lease_duration = Duration::ZERO;
                options.peers.advertise_port = "0".to_owned();
                options.metrics.show_hidden_metrics_for_version = "1.20".to_owned();
                options.runtime_config.add("nope/v1=true");
                options.admission.enable_plugins = Some(vec!["Nope".to_owned()]);
                options.audit.log.path = Some("-".into());
                options.audit.log.format = "xml".to_owned();
                options.authorization.modes = vec!["Nope".to_owned()];
                options.authentication.request_header.allowed_names = vec![String::new()];
                options.authentication.oidc.client_id = Some("a".to_owned());
                options.service_accounts.issuers = vec!["a".to_owned(), "a".to_owned()];
                options.encryption_provider_config_automatic_reload = true;
                options.features.emulation_forward_compatible = true;
                options.serving.strict_transport_security_directives = vec![String::new()];
                options.serving.goaway_chance = 1.0;
                for flag in
                    ["event-ttl", "apiserver-count", "secure-port", "min-request-timeout", "request-timeout"]
                {
                    options.refused.add(flag, format!("{flag} is refused"));
                }
            },
            &[
                "request-timeout is refused",
                "--goaway-chance can not be less than 0 or greater than 0.02",
                "min-request-timeout is refused",
                "empty value in strict-transport-security-directives",
                "ServerRunOptions.EmulationForwardCompatible cannot be set to true if the emulation version is the same as the \
                 binary version",
                "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config",
                "secure-port is refused",
                "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set",
                "service-account-issuer \"a\" is already specified",
                "empty value in \"requestheader-allowed-names\"",
                "authorization-mode \"Nope\" is not a valid mode",
                "invalid audit log format xml, allowed formats are \"legacy,json\"",
                "enable-admission-plugins plugin \"Nope\" is unknown",
                "unknown api groups nope/v1",
                "metrics.showHiddenMetricsForVersion: Invalid value: \"1.20\": must be omitted or have the value '1.35'; only the \
                 previous minor version is allowed",
                "invalid value \"0\" for --peer-advertise-port: it is no port",
                "--coordinated-leadership-lease-duration must be greater than --coordinated-leadership-renew-deadline",
                "--service-cluster-ip-range must not contain more than two entries",
                "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family",
                "--kubernetes-service-node-port 70000 must be between 0 and 65535, inclusive. If 0, the Kubernetes master \
                 service will be of type ClusterIP",
                "kubernetes service node port range 30000-32767 doesn't contain 70000",
                "apiserver-count is refused",
                "event-ttl is refused",
            ],
        );
    }

    #[test]
    fn an_error_of_an_early_step_is_told_alone() {
        let mut wrong = Options::default();
        wrong.refused.add("secure-port", "secure-port is refused".to_owned());
        let mut check = |change: fn(&mut Options), expected: &str| {
            change(&mut wrong);
            assert_eq!(wrong.validate().unwrap_err(), expected);
        };
        check(|_| {}, "secure-port is refused");
        check(
            |options| options.refused.add("watch-cache-sizes", "watch-cache-sizes are refused".to_owned()),
            "watch-cache-sizes are refused",
        );
        check(
            |options| options.service_accounts.signing_key_file = Some("/none".into()),
            "failed to parse service-account-issuer-key-file: open /none: no such file or directory",
        );
        check(
            |options| options.service_accounts.max_token_expiration = Duration::from_secs(1),
            "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds",
        );
        check(
            |options| options.service_cluster_ip_range = "10.0.0.0/30".to_owned(),
            "error determining service IP ranges for primary service cidr: the service cluster IP range must be at least 8 IP \
             addresses",
        );
        check(
            |options| options.service_cluster_ip_range = "10.0.0.0".to_owned(),
            "service-cluster-ip-range[0] is not a valid cidr",
        );
        check(
            |options| {
                (options.logging.format, options.logging.flush_frequency) = ("xml".to_owned(), Duration::ZERO)
            },
            "[format: Invalid value: \"xml\": Unsupported log format, flushFrequency: Invalid value: \"0s\": Must be greater than \
             zero]",
        );
        check(
            |options| options.features.gates.add("BtreeWatchCache=false"),
            "cannot set feature gate BtreeWatchCache to false, feature is locked to true",
        );
    }
}
