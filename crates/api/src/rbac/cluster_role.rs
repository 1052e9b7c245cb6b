//! Permissions, for the cluster or any namespace.

use super::GROUP;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("ClusterRole", "clusterroles")
}
