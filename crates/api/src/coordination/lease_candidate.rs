//! Lease candidates: the processes that may take a lease, with their versions.

mod strategy;
mod table;
mod version;

pub(super) use strategy::validate_strategy;
pub use version::Version;

use super::group::{V1ALPHA2, V1BETA1};
use crate::declare::{Declare, same_shape};
use pintle_registry::Resource;

/// The declaration in the beta version, which is the storage version.
pub fn resource() -> Resource {
    V1BETA1
        .namespaced("LeaseCandidate", "leasecandidates")
        .prints(table::columns, table::cells)
        .ruled(strategy::LeaseCandidateStrategy)
        .deprecated(36, 39, None)
}

/// The declaration in the alpha version.
pub fn resource_v1alpha2() -> Resource {
    let conversion = same_shape!("coordination.k8s.io/v1alpha2", "coordination.k8s.io/v1beta1");
    resource().in_version(V1ALPHA2, conversion).deprecated(35, 38, None)
}
