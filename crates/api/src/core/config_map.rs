//! Configuration data.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("ConfigMap", "configmaps").short_names(["cm"])
}
