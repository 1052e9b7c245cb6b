//! Admission that objects of the API configure: webhooks and policies
//! (<https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/>).
//!
//! A configuration names the requests that it applies to by rules and selectors: [`matching`]. This crate knows no
//! HTTP server and no storage; it reads configurations through the request's cached reads, and from
//! [static manifests](static_manifests).

mod conditions;
mod fields;
mod image_policy;
mod kept;
pub mod matching;
mod patched_kind;
pub mod policies;
pub mod static_manifests;
pub mod webhooks;

pub use conditions::ConditionMetrics;
pub use image_policy::ImagePolicyWebhook;
