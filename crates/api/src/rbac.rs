//! `rbac.authorization.k8s.io`: who may do what.

mod binding_rules;
pub mod cluster_role;
pub mod cluster_role_binding;
mod metadata;
mod policy_rule;
pub mod role;
pub mod role_binding;
mod subjects;

use crate::declare::Group;
use pintle_registry::Resource;

pub(crate) const GROUP: Group = Group::new("rbac.authorization.k8s.io", "v1", "k8s.io/api/rbac/v1");

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![
        cluster_role_binding::resource(),
        cluster_role::resource(),
        role_binding::resource(),
        role::resource(),
    ]
}
