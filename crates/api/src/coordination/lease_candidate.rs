//! Lease candidates: the processes that may take a lease, with their versions.

mod strategy;
mod table;
mod version;

use super::group::{V1ALPHA2, V1BETA1};
use crate::declare::{Declare, same_shape};
use pintle_machinery::GroupVersionKind;
use pintle_registry::{Resource, SelectableField, StoredVersion};

/// The declaration in the beta version, which is the storage version.
pub fn resource() -> Resource {
    let mut resource = V1BETA1
        .namespaced("LeaseCandidate", "leasecandidates")
        .prints(table::columns, table::cells)
        .selectable([SelectableField::new("spec.leaseName")])
        .ruled(strategy::LeaseCandidateStrategy)
        .deprecated(36, 39, None);
    resource.stored_versions = vec![StoredVersion {
        kind: GroupVersionKind::new("coordination.k8s.io", "v1alpha2", "LeaseCandidate"),
        type_name: "k8s.io/api/coordination/v1alpha2.LeaseCandidate".to_owned(),
        to_storage: |candidate| candidate,
    }];
    resource
}

/// The declaration in the alpha version.
pub fn resource_v1alpha2() -> Resource {
    let conversion = same_shape!("coordination.k8s.io/v1alpha2", "coordination.k8s.io/v1beta1");
    resource().in_version(V1ALPHA2, conversion).deprecated(35, 38, None)
}
