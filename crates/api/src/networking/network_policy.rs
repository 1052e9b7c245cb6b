//! Network policies: the traffic that pods accept.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("NetworkPolicy", "networkpolicies")
        .prints(table::columns, table::cells)
        .ruled(strategy::NetworkPolicyStrategy)
        .short_names(["netpol"])
}
