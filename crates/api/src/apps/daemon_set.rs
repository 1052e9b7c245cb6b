//! A pod on every node.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("DaemonSet", "daemonsets")
        .short_names(["ds"])
        .categories(["all"])
        .status(DefaultStrategy)
}
