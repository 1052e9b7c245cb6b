//! The types of the configuration.

use crate::{match_conditions::MatchConditions, review::ReviewVersion};
use std::{fmt, path::PathBuf, time::Duration};

/// The authorizers in order.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthorizationConfiguration {
    /// The authorizers; at least one.
    pub authorizers: Vec<AuthorizerConfiguration>,
}

impl AuthorizationConfiguration {
    /// Whether there is an authorizer of this type.
    pub fn has(&self, authorizer_type: AuthorizerType) -> bool {
        self.authorizers.iter().any(|authorizer| authorizer.kind.authorizer_type() == authorizer_type)
    }
}

/// One authorizer.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthorizerConfiguration {
    /// The name, a label of metrics.
    pub name: String,
    /// The type and its settings.
    pub kind: AuthorizerKind,
}

/// The type of an authorizer, with its settings.
#[derive(Debug, Clone, PartialEq)]
pub enum AuthorizerKind {
    /// An authorizer without settings.
    BuiltIn(AuthorizerType),
    /// A webhook.
    Webhook(Box<WebhookConfiguration>),
}

impl AuthorizerKind {
    /// The authorizer's type.
    pub fn authorizer_type(&self) -> AuthorizerType {
        match self {
            AuthorizerKind::BuiltIn(authorizer_type) => *authorizer_type,
            AuthorizerKind::Webhook(_) => AuthorizerType::Webhook,
        }
    }
}

/// The types of authorizers, by their names in `--authorization-mode` and configuration files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the API's own")]
pub enum AuthorizerType {
    Abac,
    AlwaysAllow,
    AlwaysDeny,
    Node,
    Rbac,
    Webhook,
}

impl AuthorizerType {
    /// All types, in the order in which messages list them.
    pub const ALL: [AuthorizerType; 6] = [
        AuthorizerType::Abac,
        AuthorizerType::AlwaysAllow,
        AuthorizerType::AlwaysDeny,
        AuthorizerType::Node,
        AuthorizerType::Rbac,
        AuthorizerType::Webhook,
    ];

    /// The type's name.
    pub fn as_str(self) -> &'static str {
        match self {
            AuthorizerType::Abac => "ABAC",
            AuthorizerType::AlwaysAllow => "AlwaysAllow",
            AuthorizerType::AlwaysDeny => "AlwaysDeny",
            AuthorizerType::Node => "Node",
            AuthorizerType::Rbac => "RBAC",
            AuthorizerType::Webhook => "Webhook",
        }
    }

    /// The type with this name.
    pub fn of(name: &str) -> Option<AuthorizerType> {
        AuthorizerType::ALL.into_iter().find(|own| own.as_str() == name)
    }

    /// The required name of the only authorizer of this type.
    pub(crate) fn authorizer_name(self) -> String {
        self.as_str().to_ascii_lowercase()
    }
}

impl fmt::Display for AuthorizerType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A webhook.
#[derive(Debug, Clone, PartialEq)]
pub struct WebhookConfiguration {
    /// The kubeconfig file of the webhook.
    pub kube_config_file: PathBuf,
    /// The timeout of a call.
    pub timeout: Duration,
    /// The version of `SubjectAccessReview` that the webhook gets.
    pub subject_access_review_version: ReviewVersion,
    /// How long allowed decisions are cached; zero disables caching them.
    pub authorized_ttl: Duration,
    /// How long other decisions are cached; zero disables caching them.
    pub unauthorized_ttl: Duration,
    /// The decision when a call fails.
    pub failure_policy: FailurePolicy,
    /// The conditions under which it is called.
    pub match_conditions: MatchConditions,
}

impl WebhookConfiguration {
    /// The cluster that an extension API server delegates its authorization to: the kubeconfig's server is the URL of the
    /// cluster's `SubjectAccessReview`s. Decisions are cached as long as by Kubernetes' extension servers.
    pub fn delegated(kube_config_file: impl Into<PathBuf>) -> WebhookConfiguration {
        WebhookConfiguration {
            kube_config_file: kube_config_file.into(),
            timeout: Duration::from_secs(10),
            subject_access_review_version: ReviewVersion::V1,
            authorized_ttl: Duration::from_secs(10),
            unauthorized_ttl: Duration::from_secs(10),
            failure_policy: FailurePolicy::NoOpinion,
            match_conditions: MatchConditions::default(),
        }
    }
}

/// The decision when a webhook fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    /// No opinion: later authorizers decide.
    NoOpinion,
    /// The request is denied.
    Deny,
}
