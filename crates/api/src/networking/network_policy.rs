//! Which traffic pods accept.

use super::{
    GROUP,
    network_policy_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("NetworkPolicy", "networkpolicies").prints(columns, cells).short_names(["netpol"])
}
