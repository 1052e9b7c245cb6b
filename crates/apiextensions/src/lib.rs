//! The API extensions server: custom resource definitions.

mod columns;
mod custom_resource_definition;
mod selectable_fields;
mod storage_version;

pub use columns::columns;
pub use selectable_fields::{selectable_fields, unsupported_field};

use pintle_registry::Resource;

/// The resources of the server itself: custom resource definitions. Those that they define come at run time.
pub fn resources() -> Vec<Resource> {
    vec![custom_resource_definition::resource()]
}
