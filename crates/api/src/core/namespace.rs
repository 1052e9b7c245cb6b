//! Namespaces.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource, SelectableField, Verb};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .cluster("Namespace", "namespaces")
        .short_names(["ns"])
        .verbs([Verb::Create, Verb::Delete, Verb::Get, Verb::List, Verb::Patch, Verb::Update, Verb::Watch])
        .part_with_verbs("finalize", DefaultStrategy, [Verb::Update])
        .status(DefaultStrategy)
        .selectable([SelectableField::new("status.phase")])
}
