//! Ingress classes: the controller that serves an ingress.

mod strategy;

use super::{
    GROUP,
    ingress_class_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("IngressClass", "ingressclasses")
        .prints(columns, cells)
        .ruled(strategy::IngressClassStrategy)
}
