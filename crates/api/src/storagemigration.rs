//! `storagemigration.k8s.io`: requests to store objects again, in the present version.

mod group;
pub mod storage_version_migration;

use pintle_registry::Resource;

/// The resources in versions that are disabled by default.
pub fn resources_off_by_default() -> Vec<Resource> {
    vec![storage_version_migration::resource()]
}
