//! The requests that a webhook or a policy applies to: rules, equivalent resources, and selectors
//! (<https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-rules>).

mod exempt;
mod matcher;
mod rule;
mod selectors;
mod targets;

pub use exempt::is_exempt;
pub use matcher::Matcher;
pub use rule::Rule;
pub use selectors::Selectors;
pub use targets::Targets;
