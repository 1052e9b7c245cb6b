//! The API extensions server: custom resource definitions.

mod custom_resource_definition;
mod storage_version;
pub mod structural;

use pintle_registry::Resource;

/// The resources of the server itself: custom resource definitions. Those that they define come at run time.
pub fn resources() -> Vec<Resource> {
    vec![custom_resource_definition::resource()]
}
