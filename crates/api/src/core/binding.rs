//! Bindings of pods to nodes.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{Resource, Verb};

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("Binding", "bindings").verbs([Verb::Create]).unserved()
}
