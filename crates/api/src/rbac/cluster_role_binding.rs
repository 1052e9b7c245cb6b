//! Who has a role in the whole cluster.

use super::GROUP;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("ClusterRoleBinding", "clusterrolebindings")
}
