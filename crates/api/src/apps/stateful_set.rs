//! Stateful sets: replicas with stable identities.

mod strategy;

use super::{
    GROUP,
    stateful_set_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("StatefulSet", "statefulsets")
        .prints(columns, cells)
        .short_names(["sts"])
        .categories(["all"])
        .plain_integers(&["spec.replicas"])
        .scale()
        .ruled(strategy::StatefulSetStrategy)
        .status(strategy::StatusStrategy)
}
