//! Service CIDRs: the blocks from which services get addresses.

mod strategy;

use super::{
    GROUP,
    service_cidr_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("ServiceCIDR", "servicecidrs")
        .prints(columns, cells)
        .ruled(strategy::ServiceCidrStrategy)
        .status(strategy::ServiceCidrStatusStrategy)
}
