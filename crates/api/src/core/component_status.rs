//! The health of control plane components.

mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::{Resource, Verb};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("ComponentStatus", "componentstatuses")
        .prints(table::columns, table::cells)
        .short_names(["cs"])
        .verbs([Verb::Get, Verb::List])
        .unserved()
}
