//! Ranges that services get their addresses from.

use super::{
    GROUP,
    service_cidr_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("ServiceCIDR", "servicecidrs").prints(columns, cells).status(DefaultStrategy)
}
