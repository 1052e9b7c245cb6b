//! Mutating admission policies
//! (<https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/>).

mod evaluator;
mod failures;
mod invocation;
mod metrics;
mod patch;
mod plugin;
mod reinvocation;

pub use metrics::MutationMetrics;
pub use plugin::MutatingPolicies;
