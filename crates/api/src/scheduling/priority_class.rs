//! Names of priorities.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("PriorityClass", "priorityclasses").short_names(["pc"])
}
