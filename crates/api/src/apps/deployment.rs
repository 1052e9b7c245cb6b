//! Replicas that are rolled from one template to the next.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("Deployment", "deployments")
        .short_names(["deploy"])
        .categories(["all"])
        .scale()
        .status(DefaultStrategy)
}
