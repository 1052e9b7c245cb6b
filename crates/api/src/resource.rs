//! `resource.k8s.io`: devices that pods ask for.

mod binding_conditions;
mod claim_spec;
mod configuration;
pub mod device_class;
mod lists;
mod names;
pub mod resource_claim;
pub mod resource_claim_template;
pub mod resource_slice;

use crate::declare::Group;
use pintle_registry::Resource;

pub(crate) const GROUP: Group = Group::new("resource.k8s.io", "v1", "k8s.io/api/resource/v1");

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![
        device_class::resource(),
        resource_claim::resource(),
        resource_claim_template::resource(),
        resource_slice::resource(),
    ]
}
