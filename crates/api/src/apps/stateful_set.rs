//! Replicas with identities.

use super::{
    GROUP,
    stateful_set_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("StatefulSet", "statefulsets")
        .prints(columns, cells)
        .short_names(["sts"])
        .categories(["all"])
        .scale()
        .status(DefaultStrategy)
}
