//! Service CIDRs: the blocks from which services get addresses.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("ServiceCIDR", "servicecidrs")
        .prints(table::columns, table::cells)
        .ruled(strategy::ServiceCidrStrategy)
        .status(strategy::ServiceCidrStatusStrategy)
}
