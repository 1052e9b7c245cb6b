//! Permissions in a namespace.

mod strategy;

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("Role", "roles").ruled(strategy::RoleStrategy)
}
