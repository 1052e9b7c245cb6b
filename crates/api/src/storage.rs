//! `storage.k8s.io`: classes, drivers and attachments of volumes.

pub mod csi_driver;
pub mod csi_node;
pub mod csi_storage_capacity;
mod parameters;
pub mod storage_class;
pub mod volume_attachment;
pub mod volume_attributes_class;

use crate::declare::{Declare, Group, same_shape};
use pintle_registry::Resource;

pub(crate) const GROUP: Group = Group::new("storage.k8s.io", "v1", "k8s.io/api/storage/v1");

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![
        csi_driver::resource(),
        csi_node::resource(),
        csi_storage_capacity::resource(),
        storage_class::resource(),
        volume_attachment::resource(),
        volume_attributes_class::resource(),
    ]
}

const V1BETA1: Group = Group::new("storage.k8s.io", "v1beta1", "k8s.io/api/storage/v1beta1");

/// The resources in versions that are disabled by default.
pub fn resources_off_by_default() -> Vec<Resource> {
    let class = volume_attributes_class::resource()
        .in_version(V1BETA1, same_shape!("storage.k8s.io/v1beta1", "storage.k8s.io/v1"))
        .deprecated(34, 37, Some("storage.k8s.io/v1 VolumeAttributesClass"));
    vec![class]
}
