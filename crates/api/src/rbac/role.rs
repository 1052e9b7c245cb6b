//! Permissions in a namespace.

use super::GROUP;
use crate::declare::Declare;
use crate::plain::PlainStrategy;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("Role", "roles").ruled(PlainStrategy::NEW.creates_on_update().takes_any_name())
}
