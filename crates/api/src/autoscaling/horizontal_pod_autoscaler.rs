//! Horizontal pod autoscalers. Both versions are served; the second is stored.

mod conversion;
mod strategy;
mod table;
mod validation;

use super::{group::V1, group::V2};
use crate::declare::{Declare, Group};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Resource};

/// The declaration in version 1.
pub fn resource_v1() -> Resource {
    let mut resource = declare(V1).stored_as("v2").prints(table::columns, cells_v1);
    resource.conversion = Some(conversion::CONVERSION);
    resource
}

/// The declaration in version 2.
pub fn resource_v2() -> Resource {
    declare(V2)
}

fn cells_v1(autoscaler: &Value, now: Timestamp) -> Vec<Cell> {
    table::cells(&(conversion::CONVERSION.to_storage)(autoscaler.clone()), now)
}

fn declare(group: Group) -> Resource {
    group
        .namespaced("HorizontalPodAutoscaler", "horizontalpodautoscalers")
        .prints(table::columns, table::cells)
        .short_names(["hpa"])
        .categories(["all"])
        .ruled(strategy::HorizontalPodAutoscalerStrategy)
        .status(strategy::StatusStrategy)
}
