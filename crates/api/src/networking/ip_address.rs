//! IP addresses: allocated service addresses.

mod strategy;

use super::{
    GROUP,
    ip_address_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("IPAddress", "ipaddresses")
        .prints(columns, cells)
        .ruled(strategy::IpAddressStrategy)
        .short_names(["ip"])
}
