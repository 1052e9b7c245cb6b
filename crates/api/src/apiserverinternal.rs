//! `internal.apiserver.k8s.io`: the versions in which the servers of a cluster store objects.

mod group;
pub mod storage_version;

use pintle_registry::Resource;

/// The resources in versions that are disabled by default.
pub fn resources_off_by_default() -> Vec<Resource> {
    vec![storage_version::resource()]
}
