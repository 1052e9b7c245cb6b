//! `storage.k8s.io`: classes, drivers and attachments of volumes.

pub mod csi_driver;
pub mod csi_node;
pub mod csi_storage_capacity;
mod group;
mod parameters;
pub mod storage_class;
pub mod volume_attachment;
pub mod volume_attributes_class;

use crate::declare::{Declare, same_shape};
use group::V1BETA1;
use pintle_registry::Resource;

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

/// The resources in versions that are disabled by default.
pub fn resources_off_by_default() -> Vec<Resource> {
    let class = volume_attributes_class::resource()
        .in_version(V1BETA1, same_shape!("storage.k8s.io/v1beta1", "storage.k8s.io/v1"))
        .deprecated(34, 37, Some("storage.k8s.io/v1 VolumeAttributesClass"));
    vec![class]
}
