//! Which traffic pods accept.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("NetworkPolicy", "networkpolicies").short_names(["netpol"])
}
