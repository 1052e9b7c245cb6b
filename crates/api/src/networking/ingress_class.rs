//! Ingress classes: the controller that serves an ingress.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("IngressClass", "ingressclasses")
        .prints(table::columns, table::cells)
        .ruled(strategy::IngressClassStrategy)
}
