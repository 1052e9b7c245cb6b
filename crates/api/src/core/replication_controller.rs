//! The older form of replica sets.

use super::GROUP;
use crate::declare::{Declare, integer_field};
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("ReplicationController", "replicationcontrollers")
        .short_names(["rc"])
        .categories(["all"])
        .scale()
        .status(DefaultStrategy)
        .selectable([integer_field("status.replicas")])
        .stored_at("controllers")
}
