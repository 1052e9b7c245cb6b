//! `rbac.authorization.k8s.io`: roles and bindings.

mod binding_rules;
mod binding_table;
pub mod cluster_role;
pub mod cluster_role_binding;
mod escalation;
mod group;
mod guarded;
mod metadata;
mod policy_rule;
pub mod role;
pub mod role_binding;

use pintle_rbac::Rbac;
use pintle_registry::Resource;
use std::sync::Arc;

/// The resources of the group, with the prevention of privilege escalation by `rbac`.
pub fn resources(rbac: &Arc<Rbac>) -> Vec<Resource> {
    vec![
        cluster_role_binding::resource(rbac),
        cluster_role::resource(rbac),
        role_binding::resource(rbac),
        role::resource(rbac),
    ]
}
