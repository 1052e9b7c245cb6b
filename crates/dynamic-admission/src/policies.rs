//! Admission policies: expressions that judge or change objects, and bindings that put them in force
//! (<https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/>).
//!
//! Policies and bindings are kept in a compiled form while they are unchanged ([`hooks`]). A request that no policy
//! matches costs the comparison with their rules.

mod binding;
mod excluded;
mod failure_metrics;
mod hooks;
mod manifests;
pub mod mutating;
mod params;
pub mod plugin_config;
pub mod validating;
mod view;
