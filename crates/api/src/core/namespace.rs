//! Namespaces.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::{Resource, SelectableField, Verb};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("Namespace", "namespaces")
        .short_names(["ns"])
        .verbs([Verb::Create, Verb::Delete, Verb::Get, Verb::List, Verb::Patch, Verb::Update, Verb::Watch])
        .prints(table::columns, table::cells)
        .ruled(strategy::NamespaceStrategy)
        .part_with_verbs("finalize", strategy::FinalizeStrategy, [Verb::Update])
        .status(strategy::StatusStrategy)
        .selectable([SelectableField::new("status.phase")])
}
