//! Ingresses: routes from outside the cluster to services.

mod backend;
mod rules_validation;
mod strategy;

pub(super) use backend::validate_resource as validate_reference;

use super::{
    GROUP,
    ingress_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("Ingress", "ingresses")
        .prints(columns, cells)
        .short_names(["ing"])
        .ruled(strategy::IngressStrategy)
        .status(strategy::IngressStatusStrategy)
        .stored_at("ingress")
}
