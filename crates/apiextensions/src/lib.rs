//! The API extensions server: custom resource definitions.

mod custom_resource_definition;
mod definition;
mod storage_version;

use pintle_registry::Resource;

/// The resources of the server itself: custom resource definitions. Those that they define come at run time.
pub fn resources() -> Vec<Resource> {
    vec![custom_resource_definition::resource()]
}
