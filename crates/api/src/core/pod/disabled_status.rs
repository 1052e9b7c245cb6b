//! Drops status fields of disabled features, unless the stored pod has them.

use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{Value, ValueExt};

const CONTAINER_STATUSES: [&str; 3] =
    ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];

/// Drops the fields.
pub(super) fn drop_disabled_fields(status: &mut Value, old: Option<&Value>) {
    let has_claims = |old: &Value| !old.items_at("nodeAllocatableResourceClaimStatuses").is_empty();
    if !enabled(Gate::DRANodeAllocatableResources) && !old.is_some_and(has_claims) {
        status.remove_at("nodeAllocatableResourceClaimStatuses");
    }
    if !enabled(Gate::ImageVolumeWithDigest) && !old.is_some_and(has_volume_status) {
        for list in CONTAINER_STATUSES {
            for container in status.items_at_mut(list) {
                for mount in container.items_at_mut("volumeMounts") {
                    mount.remove_at("volumeStatus");
                }
            }
        }
    }
}

fn has_volume_status(status: &Value) -> bool {
    CONTAINER_STATUSES
        .iter()
        .flat_map(|list| status.items_at(list))
        .flat_map(|container| container.items_at("volumeMounts"))
        .any(|mount| mount.at("volumeStatus").is_some())
}
