//! The health of control plane components.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{Resource, Verb};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .cluster("ComponentStatus", "componentstatuses")
        .short_names(["cs"])
        .verbs([Verb::Get, Verb::List])
        .unserved()
}
