//! Validating admission policies (<https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/>).

mod annotations;
mod decision;
mod evaluator;
mod metrics;
mod plugin;

pub use metrics::PolicyMetrics;
pub use plugin::ValidatingPolicies;
