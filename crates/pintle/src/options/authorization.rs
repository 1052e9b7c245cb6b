//! The flags of authorization: reads and validates them. Names and messages are kube-apiserver's
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authorization/#choice-of-authz-config>).

use super::arguments::{duration, list, texts};
use clap::{Arg, ArgMatches, parser::ValueSource, value_parser};
use pintle_authorization::{
    AuthorizationConfiguration, AuthorizerConfiguration, AuthorizerKind, AuthorizerType, ConfigurationSource,
    FailurePolicy, MatchConditions, ReviewVersion, WebhookConfiguration,
};
use pintle_go_forms::quote;
use std::{collections::HashSet, path::PathBuf, time::Duration};

/// The configuration of the authorizers.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthorizationOptions {
    /// The authorizer types in order, by their names on the command line.
    pub modes: Vec<String>,
    /// The authorization configuration file, an alternative to the modes.
    pub config: Option<PathBuf>,
    /// How often that file is checked for changes.
    pub config_poll_interval: Duration,
    /// The policy file of the mode `ABAC`.
    pub policy_file: Option<PathBuf>,
    /// The kubeconfig file of the mode `Webhook`.
    pub webhook_config_file: Option<PathBuf>,
    /// The version of `SubjectAccessReview` that the webhook gets.
    pub webhook_version: String,
    /// How long the webhook's allowed decisions are cached.
    pub webhook_cache_authorized_ttl: Duration,
    /// How long the webhook's other decisions are cached.
    pub webhook_cache_unauthorized_ttl: Duration,
    /// Whether modes or a webhook were given by flags, which excludes a configuration file.
    pub is_given_by_flags: bool,
}

impl Default for AuthorizationOptions {
    fn default() -> AuthorizationOptions {
        AuthorizationOptions {
            modes: DEFAULT_MODES.map(str::to_owned).into(),
            config: None,
            config_poll_interval: Duration::from_secs(1),
            policy_file: None,
            webhook_config_file: None,
            webhook_version: "v1beta1".to_owned(),
            webhook_cache_authorized_ttl: Duration::from_secs(300),
            webhook_cache_unauthorized_ttl: Duration::from_secs(30),
            is_given_by_flags: false,
        }
    }
}

/// The default modes. Kube-apiserver's default is `AlwaysAllow`.
const DEFAULT_MODES: [&str; 2] = ["Node", "RBAC"];

const MODE: &str = "authorization-mode";
const CONFIG: &str = "authorization-config";
const POLICY_FILE: &str = "authorization-policy-file";
const WEBHOOK_CONFIG_FILE: &str = "authorization-webhook-config-file";
const WEBHOOK_VERSION: &str = "authorization-webhook-version";
const AUTHORIZED_TTL: &str = "authorization-webhook-cache-authorized-ttl";
const UNAUTHORIZED_TTL: &str = "authorization-webhook-cache-unauthorized-ttl";

/// The timeout of a webhook that is configured by flags.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(30);

impl AuthorizationOptions {
    /// The flags.
    pub fn args() -> Vec<Arg> {
        let flag = |name: &'static str, value: &'static str, help: &'static str| {
            Arg::new(name).long(name).value_name(value).help(help)
        };
        let file = |name, help| flag(name, "FILE", help).value_parser(value_parser!(PathBuf));
        let time = |name, help| flag(name, "DURATION", help).value_parser(duration);
        vec![
            list(
                MODE,
                "MODE,…",
                "Authorizers in order: AlwaysAllow, AlwaysDeny, ABAC, Webhook, RBAC, Node (default Node,RBAC)",
            ),
            file(CONFIG, "File with the authorization configuration, instead of --authorization-mode"),
            file(POLICY_FILE, "File with the policies of the mode ABAC, one per line"),
            file(WEBHOOK_CONFIG_FILE, "Kubeconfig file of the webhook of the mode Webhook"),
            flag(
                WEBHOOK_VERSION,
                "VERSION",
                "Version of SubjectAccessReview that the webhook gets: v1beta1 or v1",
            ),
            time(AUTHORIZED_TTL, "Time for which allowed decisions of the webhook are cached"),
            time(UNAUTHORIZED_TTL, "Time for which other decisions of the webhook are cached"),
        ]
    }

    /// Reads the flags.
    pub fn read(matches: &ArgMatches) -> AuthorizationOptions {
        let default = AuthorizationOptions::default();
        let modes = texts(matches, MODE).unwrap_or_default();
        let by_flags = [MODE, WEBHOOK_CONFIG_FILE, WEBHOOK_VERSION, AUTHORIZED_TTL, UNAUTHORIZED_TTL];
        let is_given = |name: &&str| matches.value_source(name) == Some(ValueSource::CommandLine);
        let time = |name, default| matches.get_one(name).copied().unwrap_or(default);
        AuthorizationOptions {
            modes: if modes.is_empty() { default.modes } else { modes },
            config: matches.get_one(CONFIG).cloned(),
            config_poll_interval: default.config_poll_interval,
            policy_file: matches.get_one(POLICY_FILE).cloned(),
            webhook_config_file: matches.get_one(WEBHOOK_CONFIG_FILE).cloned(),
            webhook_version: matches.get_one(WEBHOOK_VERSION).cloned().unwrap_or(default.webhook_version),
            webhook_cache_authorized_ttl: time(AUTHORIZED_TTL, default.webhook_cache_authorized_ttl),
            webhook_cache_unauthorized_ttl: time(UNAUTHORIZED_TTL, default.webhook_cache_unauthorized_ttl),
            is_given_by_flags: by_flags.iter().any(is_given),
        }
    }

    /// The errors of the options, or of the configuration file.
    pub(crate) fn errors(&self) -> Vec<String> {
        if let Some(path) = &self.config {
            return match self.is_given_by_flags {
                true => vec![format!(
                    "--{CONFIG} can not be specified when --{MODE} or --authorization-webhook-* flags are defined"
                )],
                false => {
                    AuthorizationConfiguration::read(path).err().iter().map(ToString::to_string).collect()
                }
            };
        }
        let mut errors = self.authorizers().1;
        let has = |mode: AuthorizerType| self.modes.iter().any(|own| own == mode.as_str());
        if self.policy_file.is_some() && !has(AuthorizerType::Abac) {
            errors.push(format!("cannot specify --{POLICY_FILE} without mode ABAC"));
        }
        if self.webhook_config_file.is_some() && !has(AuthorizerType::Webhook) {
            errors.push(format!("cannot specify --{WEBHOOK_CONFIG_FILE} without mode Webhook"));
        }
        let different: HashSet<_> = self.modes.iter().collect();
        if different.len() != self.modes.len() {
            let modes: Vec<_> = self.modes.iter().map(|mode| quote(mode)).collect();
            errors
                .push(format!("authorization-mode [{}] has mode specified more than once", modes.join(" ")));
        }
        errors
    }

    /// The source of the configuration, from options without errors.
    pub(crate) fn source(&self) -> ConfigurationSource {
        match &self.config {
            Some(path) => {
                ConfigurationSource::File { path: path.clone(), poll_interval: self.config_poll_interval }
            }
            None => {
                let (authorizers, _) = self.authorizers();
                ConfigurationSource::Fixed(AuthorizationConfiguration { authorizers })
            }
        }
    }

    fn authorizers(&self) -> (Vec<AuthorizerConfiguration>, Vec<String>) {
        let (mut authorizers, mut errors) = (Vec::new(), Vec::new());
        for mode in &self.modes {
            let Some(authorizer_type) = AuthorizerType::of(mode) else {
                errors.push(format!("authorization-mode {} is not a valid mode", quote(mode)));
                continue;
            };
            if authorizer_type == AuthorizerType::Abac && self.policy_file.is_none() {
                errors.push("authorization-mode ABAC's authorization policy file not passed".to_owned());
            }
            let (name, kind) = match authorizer_type {
                AuthorizerType::Webhook => match self.webhook() {
                    Ok(webhook) => ("default".to_owned(), AuthorizerKind::Webhook(Box::new(webhook))),
                    Err(error) => {
                        errors.push(error);
                        continue;
                    }
                },
                other => (other.as_str().to_ascii_lowercase(), AuthorizerKind::BuiltIn(other)),
            };
            authorizers.push(AuthorizerConfiguration { name, kind });
        }
        (authorizers, errors)
    }

    fn webhook(&self) -> Result<WebhookConfiguration, String> {
        let Some(kube_config_file) = self.webhook_config_file.clone() else {
            return Err("authorization-mode Webhook's authorization config file not passed".to_owned());
        };
        let Some(subject_access_review_version) = ReviewVersion::of(&self.webhook_version) else {
            return Err(format!(
                "unsupported webhook authorizer version {}, supported versions are \"v1\", \"v1beta1\"",
                quote(&self.webhook_version)
            ));
        };
        Ok(WebhookConfiguration {
            kube_config_file,
            timeout: WEBHOOK_TIMEOUT,
            subject_access_review_version,
            authorized_ttl: self.webhook_cache_authorized_ttl,
            unauthorized_ttl: self.webhook_cache_unauthorized_ttl,
            failure_policy: FailurePolicy::NoOpinion,
            match_conditions: MatchConditions::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    fn read(flags: &[&str]) -> AuthorizationOptions {
        let command = Command::new("pintle").args(AuthorizationOptions::args());
        AuthorizationOptions::read(&command.get_matches_from([&["pintle"], flags].concat()))
    }

    fn source(flags: &[&str]) -> Vec<String> {
        match read(flags).source() {
            ConfigurationSource::File { path, .. } => vec![path.display().to_string()],
            ConfigurationSource::Fixed(configuration) => {
                configuration.authorizers.into_iter().map(|authorizer| authorizer.name).collect()
            }
        }
    }

    #[test]
    fn modes_are_asked_in_their_order() {
        let check = |flags: &[&str], expected: &[&str]| assert_eq!(source(flags), expected, "{flags:?}");
        check(&[], &["node", "rbac"]);
        check(&["--authorization-mode="], &["node", "rbac"]);
        check(
            &["--authorization-mode=RBAC,Node", "--authorization-mode", "AlwaysDeny"],
            &["rbac", "node", "alwaysdeny"],
        );
        check(
            &[
                "--authorization-mode=Webhook,ABAC",
                "--authorization-webhook-config-file=/w",
                "--authorization-policy-file=/p",
            ],
            &["default", "abac"],
        );
        check(&["--authorization-config=/c"], &["/c"]);
    }

    #[test]
    fn what_does_not_fit_together_is_told() {
        let check = |flags: &[&str], expected: &str| {
            assert_eq!(read(flags).errors().join(", "), expected, "{flags:?}")
        };
        check(
            &["--authorization-config=/c", "--authorization-webhook-version=v1"],
            "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are \
             defined",
        );
        check(
            &["--authorization-mode=,"],
            "authorization-mode \"\" is not a valid mode, authorization-mode \"\" is not a valid mode, authorization-mode [\"\" \"\"] has mode specified more than once",
        );
        check(&["--authorization-mode=Rbac"], "authorization-mode \"Rbac\" is not a valid mode");
        check(
            &["--authorization-mode=ABAC"],
            "authorization-mode ABAC's authorization policy file not passed",
        );
        check(
            &["--authorization-mode=Webhook"],
            "authorization-mode Webhook's authorization config file not passed",
        );
        check(
            &["--authorization-policy-file=/p"],
            "cannot specify --authorization-policy-file without mode ABAC",
        );
        check(
            &["--authorization-webhook-config-file=/w", "--authorization-mode=RBAC,RBAC"],
            "cannot specify --authorization-webhook-config-file without mode Webhook, authorization-mode [\"RBAC\" \"RBAC\"] \
             has mode specified more than once",
        );
        check(
            &[
                "--authorization-mode=Webhook",
                "--authorization-webhook-config-file=/w",
                "--authorization-webhook-version=v2",
            ],
            "unsupported webhook authorizer version \"v2\", supported versions are \"v1\", \"v1beta1\"",
        );
    }
}
