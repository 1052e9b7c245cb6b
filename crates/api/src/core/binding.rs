//! Bindings of pods to nodes: the older form of `pods/binding`.

use super::group::GROUP;
use super::pod::BindingCreater;
use crate::declare::Declare;
use pintle_registry::{Backing, Resource, Verb};
use std::sync::Arc;

/// The declaration of the resource.
pub fn resource() -> Resource {
    let mut resource = GROUP.namespaced("Binding", "bindings").verbs([Verb::Create]);
    resource.backing = Backing::Creater(Arc::new(BindingCreater));
    resource
}
