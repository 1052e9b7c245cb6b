//! Network policies: the traffic that pods accept.

mod strategy;

use super::{
    GROUP,
    network_policy_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("NetworkPolicy", "networkpolicies")
        .prints(columns, cells)
        .ruled(strategy::NetworkPolicyStrategy)
        .short_names(["netpol"])
}
