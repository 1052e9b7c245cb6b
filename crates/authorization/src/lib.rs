//! The configurable authorizers (<https://kubernetes.io/docs/reference/access-authn-authz/authorization/>): the chain
//! configured by flags or a file, the node authorizer, webhooks, ABAC policy files, and the authorization checks of
//! expressions.
//!
//! RBAC is a crate of its own. This crate knows no HTTP requests.

mod abac;
mod authorizer_chain;
mod config;
mod configured_authorizer;
mod expressions;
mod match_conditions;
mod metrics;
mod node;
mod privileged_groups;
mod review;
#[cfg(test)]
mod testing;
mod webhook;

pub use abac::{AbacAuthorizer, AbacError};
pub use config::{
    AuthorizationConfiguration, AuthorizerConfiguration, AuthorizerKind, AuthorizerType, FailurePolicy,
    InvalidConfiguration, WebhookConfiguration,
};
pub use configured_authorizer::{
    AuthorizationError, ConfigurationSource, ConfiguredAuthorizer, ObjectAuthorizers,
};
pub use expressions::ExpressionAuthorizer;
pub use match_conditions::MatchConditions;
pub use metrics::{AuthorizationMetrics, NodeMetrics};
pub use node::{NodeAuthorizer, NodeSources, node_name};
pub use review::ReviewVersion;
pub use webhook::WebhookAuthorizer;
