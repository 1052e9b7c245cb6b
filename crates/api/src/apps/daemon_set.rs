//! A pod on every node.

use super::{
    GROUP,
    daemon_set_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("DaemonSet", "daemonsets")
        .prints(columns, cells)
        .short_names(["ds"])
        .categories(["all"])
        .status(DefaultStrategy)
}
