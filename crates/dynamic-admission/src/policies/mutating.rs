//! Mutating admission policies
//! (<https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/>).

mod evaluator;
mod failures;
mod invocation;
mod patch;
mod plugin;
mod reinvocation;

pub use plugin::MutatingPolicies;
