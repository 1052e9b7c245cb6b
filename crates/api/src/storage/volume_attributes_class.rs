//! Volume attributes classes: performance classes between which volumes can switch.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("VolumeAttributesClass", "volumeattributesclasses")
        .prints(table::columns, table::cells)
        .ruled(strategy::VolumeAttributesClassStrategy)
        .short_names(["vac"])
}
