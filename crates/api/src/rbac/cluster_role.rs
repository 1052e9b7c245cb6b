//! Permissions, for the cluster or any namespace.

mod strategy;

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("ClusterRole", "clusterroles").ruled(strategy::ClusterRoleStrategy)
}
