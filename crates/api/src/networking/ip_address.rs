//! Addresses that are taken.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("IPAddress", "ipaddresses").short_names(["ip"])
}
