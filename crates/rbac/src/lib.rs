//! Role-based access control (<https://kubernetes.io/docs/reference/access-authn-authz/rbac/>): roles and bindings in an
//! index in memory ([`index`]), fed by the watch caches ([`informer`]), and the authorizer that asks it ([`Rbac`]).
//!
//! The index is immutable behind an atomic pointer, so that a check takes no lock, and is changed by replacing it with one
//! that shares all but what changed. Bindings are found by the names of users and groups, so that a check costs what the
//! bindings of its user cost, however many others there are.
//!
//! What writes of roles and bindings need ([`covers`], the rules of somebody) is here too; the strategies of the kinds ask.
//! Nothing here writes, and nothing knows requests.

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

/// The group of roles and bindings.
pub const GROUP_NAME: &str = "rbac.authorization.k8s.io";
