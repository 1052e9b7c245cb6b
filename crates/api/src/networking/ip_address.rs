//! IP addresses: allocated service addresses.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("IPAddress", "ipaddresses")
        .prints(table::columns, table::cells)
        .ruled(strategy::IpAddressStrategy)
        .short_names(["ip"])
}
