//! Horizontal pod autoscalers. Both versions are served; the second is stored.

mod conversion;
mod strategy;
mod table;
mod validation;

use super::{group::V1, group::V2};
use crate::declare::{Declare, Group};
use pintle_registry::Resource;

/// The declaration in version 1.
pub fn resource_v1() -> Resource {
    let mut resource = declare(V1).stored_as("v2");
    resource.conversion = Some(conversion::CONVERSION);
    resource
}

/// The declaration in version 2.
pub fn resource_v2() -> Resource {
    declare(V2)
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
