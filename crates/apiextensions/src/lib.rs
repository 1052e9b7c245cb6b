//! The API extensions server: custom resource definitions, and the custom resources that they define.
//!
//! ```text
//!   definitions' cache ──► informer ──► serving: declarations, stores ──► requests
//!                             │
//!                             └──► controllers: names, established, … ──► status of definitions
//! ```
//!
//! A definition becomes declarations of resources, one for each version, which the generic server serves like any other
//! resource.

mod columns;
mod controllers;
mod conversion;
mod custom_resource_definition;
mod definition;
mod definition_view;
mod fixed_definition;
mod group_versions;
mod informer;
mod published;
mod resource;
mod selectable_fields;
mod server;
mod serving;
mod storage_version;
pub mod structural;

pub use fixed_definition::{FixedDefinition, FixedDefinitionError};
pub use group_versions::GroupVersions;
pub use server::ApiExtensions;

pub use columns::columns;
pub use selectable_fields::{selectable_fields, unsupported_field};

use pintle_registry::Resource;

/// The declarations of the server's own resources: definitions. Custom resources are declared at run time.
pub fn resources() -> Vec<Resource> {
    vec![custom_resource_definition::resource()]
}
