//! Who has a role in a namespace.

use super::GROUP;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("RoleBinding", "rolebindings")
}
