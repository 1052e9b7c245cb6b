//! Replicas of one template.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("ReplicaSet", "replicasets")
        .short_names(["rs"])
        .categories(["all"])
        .scale()
        .status(DefaultStrategy)
}
