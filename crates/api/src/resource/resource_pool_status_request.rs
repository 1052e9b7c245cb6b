//! Resource pool status requests: a controller is asked for the devices in the pools of a driver.

mod table;
mod validation;

use super::group::V1ALPHA3;
use crate::declare::Declare;
use crate::plain::{CheckedStatusStrategy, PlainStrategy};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    V1ALPHA3
        .cluster("ResourcePoolStatusRequest", "resourcepoolstatusrequests")
        .prints(table::columns, table::cells)
        .ruled(RULES)
        .status_without_table(STATUS)
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .with_status()
    .needs_resource_version()
    .answers_deleted_object()
    .checked(validation::validate, validation::validate_update);

const STATUS: CheckedStatusStrategy =
    CheckedStatusStrategy { needs_resource_version: true, check: validation::validate_status_update };
