//! `resource.k8s.io`: dynamic resource allocation.

mod admin_access;
mod binding_conditions;
mod claim_spec;
mod configuration;
pub mod device_class;
mod device_selector;
pub mod device_taint_rule;
mod group;
mod lists;
mod names;
pub mod resource_claim;
pub mod resource_claim_template;
pub mod resource_pool_status_request;
pub mod resource_slice;
mod v1beta1;

use crate::declare::{Declare, same_shape};
use group::{V1BETA1, V1BETA2};
use pintle_registry::Resource;

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![
        device_class::resource(),
        resource_claim::resource(),
        resource_claim_template::resource(),
        resource_slice::resource(),
    ]
}

/// The resources in versions that are disabled by default.
pub fn resources_off_by_default() -> Vec<Resource> {
    let same = same_shape!("resource.k8s.io/v1beta2", "resource.k8s.io/v1");
    let same_first = same_shape!("resource.k8s.io/v1beta1", "resource.k8s.io/v1");
    let second =
        resources().into_iter().map(|resource| resource.in_version(V1BETA2, same).deprecated(36, 39, None));
    let first = [
        (device_class::resource(), same_first),
        (resource_claim::resource(), v1beta1::CLAIM),
        (resource_claim_template::resource(), v1beta1::TEMPLATE),
        (resource_slice::resource(), v1beta1::SLICE),
    ];
    let first = first
        .into_iter()
        .map(|(resource, conversion)| resource.in_version(V1BETA1, conversion).deprecated(35, 38, None));
    let own = [
        device_taint_rule::resource(),
        device_taint_rule::resource_v1beta2(),
        resource_pool_status_request::resource(),
    ];
    second.chain(first).chain(own).collect()
}
