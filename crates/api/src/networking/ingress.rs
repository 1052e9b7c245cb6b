//! Ingresses: routes from outside the cluster to services.

mod backend;
mod rules_validation;
mod strategy;
mod table;

pub(super) use backend::validate_resource as validate_reference;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("Ingress", "ingresses")
        .prints(table::columns, table::cells)
        .short_names(["ing"])
        .ruled(strategy::IngressStrategy)
        .status(strategy::IngressStatusStrategy)
        .stored_at("ingress")
}
