//! Addresses that are taken.

mod strategy;

use super::{
    GROUP,
    ip_address_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .cluster("IPAddress", "ipaddresses")
        .prints(columns, cells)
        .ruled(strategy::IpAddressStrategy)
        .short_names(["ip"])
}
