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
        .refuses_fields(|resource, name| {
            let (version, kind) = (resource.resource.group_version(), &resource.kind);
            format!("field label not supported for {version}, Kind={kind}: {name}")
        })
}

#[cfg(test)]
mod tests {
    #[test]
    fn refusals_of_fields_name_the_version() {
        for resource in crate::resource::resources()
            .into_iter()
            .chain(crate::resource::resources_off_by_default())
            .filter(|found| found.kind == "ResourceSlice")
        {
            let refusal =
                resource.unsupported_field.map(|refusal| refusal(&resource, "x")).unwrap_or_default();
            let version = &resource.resource.version;
            let expected =
                format!("field label not supported for resource.k8s.io/{version}, Kind=ResourceSlice: x");
            assert_eq!(refusal, expected);
        }
    }
}
