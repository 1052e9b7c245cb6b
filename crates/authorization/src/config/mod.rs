//! The configuration file: `AuthorizationConfiguration` of `apiserver.config.k8s.io/v1`
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authorization/#using-configuration-file-for-authorization>), from
//! bytes to types.
//!
//! What [`AuthorizationConfiguration::parse`] returns is valid: types are known, names differ, webhooks have all they need
//! and their match conditions compile. Everything that is wrong is told at once, by field.

mod decode;
#[cfg(test)]
mod tests;
mod validation;

use crate::match_conditions::MatchConditions;
use pintle_machinery::status::aggregate;
use std::{fmt, path::PathBuf, time::Duration};

/// Who is asked, in this order.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthorizationConfiguration {
    /// The authorizers; at least one.
    pub authorizers: Vec<AuthorizerConfiguration>,
}

/// One authorizer.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthorizerConfiguration {
    /// What tells it from others in metrics.
    pub name: String,
    /// What it is.
    pub kind: AuthorizerKind,
}

/// What an authorizer is.
#[derive(Debug, Clone, PartialEq)]
pub enum AuthorizerKind {
    /// Of one of the types that need no settings.
    BuiltIn(AuthorizerType),
    /// A webhook.
    Webhook(Box<WebhookConfiguration>),
}

impl AuthorizerKind {
    /// Its type.
    pub fn authorizer_type(&self) -> AuthorizerType {
        match self {
            AuthorizerKind::BuiltIn(authorizer_type) => *authorizer_type,
            AuthorizerKind::Webhook(_) => AuthorizerType::Webhook,
        }
    }
}

/// The types of authorizers, as `--authorization-mode` and configuration files name them.
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
    /// All, in the order in which messages list them.
    pub const ALL: [AuthorizerType; 6] = [
        AuthorizerType::Abac,
        AuthorizerType::AlwaysAllow,
        AuthorizerType::AlwaysDeny,
        AuthorizerType::Node,
        AuthorizerType::Rbac,
        AuthorizerType::Webhook,
    ];

    /// Its name.
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

    /// The type of a name.
    pub fn of(name: &str) -> Option<AuthorizerType> {
        AuthorizerType::ALL.into_iter().find(|own| own.as_str() == name)
    }

    /// The name that the one authorizer of this type has.
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
    /// The kubeconfig file that says where it is.
    pub kube_config_file: PathBuf,
    /// How long a call may take.
    pub timeout: Duration,
    /// The version of the reviews it is sent.
    pub subject_access_review_version: ReviewVersion,
    /// For how long it is remembered what is allowed; zero is not at all.
    pub authorized_ttl: Duration,
    /// For how long it is remembered what is not allowed; zero is not at all.
    pub unauthorized_ttl: Duration,
    /// What it means when it does not answer.
    pub failure_policy: FailurePolicy,
    /// When it is asked.
    pub match_conditions: MatchConditions,
}

/// A version of `SubjectAccessReview`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the API's own")]
pub enum ReviewVersion {
    V1,
    V1beta1,
}

impl ReviewVersion {
    /// The version of a name.
    pub fn of(name: &str) -> Option<ReviewVersion> {
        match name {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1beta1),
            _ => None,
        }
    }
}

/// What it means when an authorizer fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    /// It has no opinion.
    NoOpinion,
    /// Nothing is allowed that nobody allowed before.
    Deny,
}

/// Why a configuration cannot be used. Names fields, not the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidConfiguration(pub(crate) String);

impl AuthorizationConfiguration {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<AuthorizationConfiguration, InvalidConfiguration> {
        let tree = decode::decode(bytes).map_err(|reason| {
            InvalidConfiguration(format!("failed to load AuthorizationConfiguration from file: {reason}"))
        })?;
        let configuration = validation::validate(&tree)
            .map_err(|errors| InvalidConfiguration(aggregate(errors.iter().map(ToString::to_string))))?;
        // The authorizers that there is one of have the name of their type.
        let wrong = configuration.authorizers.iter().filter_map(|AuthorizerConfiguration { name, kind }| {
            let AuthorizerKind::BuiltIn(authorizer_type) = kind else { return None };
            let expected = authorizer_type.authorizer_name();
            (*name != expected).then(|| {
                format!("expected name {expected} for authorizer {authorizer_type} instead of {name}")
            })
        });
        let wrong: Vec<_> = wrong.collect();
        match wrong.is_empty() {
            true => Ok(configuration),
            false => Err(InvalidConfiguration(aggregate(wrong.into_iter()))),
        }
    }

    /// Whether there is an authorizer of a type.
    pub fn has(&self, authorizer_type: AuthorizerType) -> bool {
        self.authorizers.iter().any(|authorizer| authorizer.kind.authorizer_type() == authorizer_type)
    }
}
