//! Role-based access control (<https://kubernetes.io/docs/reference/access-authn-authz/rbac/>): roles and bindings in
//! an in-memory index ([`index`]), fed by the watch caches ([`informer`]), and the authorizer that queries it
//! ([`Rbac`]).
//!
//! The index is immutable behind an atomic pointer, so that a check takes no lock; a change replaces it by an index
//! that shares all unchanged entries. Bindings are indexed by the names of users and groups, so that the cost of a
//! check depends on the bindings of its user only.
//!
//! The escalation checks for writes of roles and bindings ([`covers`], the rules of a user) are here too; the
//! strategies of the kinds call them. This crate writes no objects and knows no requests.

pub mod covers;
mod index;
mod informer;
mod policy_rule;
mod rbac;
mod role_binding;

pub use index::{Index, MissingRole};
pub use informer::Sources;
pub use policy_rule::PolicyRule;
pub use rbac::Rbac;
pub use role_binding::{RoleBinding, RoleRef, Subject};

/// The API group of roles and bindings.
pub const GROUP_NAME: &str = "rbac.authorization.k8s.io";
