//! Replicas with identities.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("StatefulSet", "statefulsets")
        .short_names(["sts"])
        .categories(["all"])
        .scale()
        .status(DefaultStrategy)
}
