//! The authorizers that a server is configured with
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authorization/>): which ones are asked and in what order, by
//! flags or by a file; what nodes may do; webhooks; policy files; and what expressions ask.
//!
//! Deciding by roles is elsewhere, and so is what a decision means for a request. Nothing here knows requests.

mod abac;
mod chain;
mod config;
mod expressions;
mod match_conditions;
mod metrics;
mod node;
#[cfg(test)]
mod testing;
mod webhook;

pub use abac::{AbacAuthorizer, AbacError};
pub use chain::{AuthorizationError, ConfigurationSource, ConfiguredAuthorizer, ObjectAuthorizers};
pub use config::{
    AuthorizationConfiguration, AuthorizerConfiguration, AuthorizerKind, AuthorizerType, FailurePolicy,
    InvalidConfiguration, ReviewVersion, WebhookConfiguration,
};
pub use expressions::ExpressionAuthorizer;
pub use match_conditions::MatchConditions;
pub use metrics::{AuthorizationMetrics, NodeMetrics};
pub use node::{NodeAuthorizer, NodeSources, node_name};
