//! Resource slices: a part of the devices of a driver.

mod capacity;
mod counters;
mod device;
mod list_attributes;
mod node_selection;
mod strategy;
mod table;
mod validation;

pub(super) use device::{validate_taint_effect, validate_taint_names};

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::{Resource, SelectableField};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("ResourceSlice", "resourceslices")
        .prints(table::columns, table::cells)
        .ruled(strategy::ResourceSliceStrategy)
        .selectable([
            SelectableField::new("spec.nodeName").with_trigger(),
            SelectableField::new("spec.driver"),
        ])
        .refuses_fields(|name| {
            format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {name}")
        })
}
