//! Autoscalers of replicas. Both versions are served, the second is stored.

use super::{
    V1, V2,
    horizontal_pod_autoscaler_table::{cells, columns},
};
use crate::declare::{Declare, Group};
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration in version 1.
pub fn resource_v1() -> Resource {
    declare(V1).stored_as("v2")
}

/// The declaration in version 2.
pub fn resource_v2() -> Resource {
    declare(V2)
}

fn declare(group: Group) -> Resource {
    group
        .namespaced("HorizontalPodAutoscaler", "horizontalpodautoscalers")
        .prints(columns, cells)
        .short_names(["hpa"])
        .categories(["all"])
        .status(DefaultStrategy)
}
