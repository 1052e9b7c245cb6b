//! The health of control plane components.

mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::{ComputedObjects, Resource, Verb};
use std::sync::Arc;

/// The declaration of the resource, whose objects are computed.
pub fn resource(objects: &Arc<dyn ComputedObjects>) -> Resource {
    let mut resource = GROUP
        .cluster("ComponentStatus", "componentstatuses")
        .prints(table::columns, table::cells)
        .short_names(["cs"])
        .verbs([Verb::Get, Verb::List])
        .computed(objects.clone());
    resource.deprecation = Some("v1 ComponentStatus is deprecated in v1.19+".to_owned());
    resource
}
