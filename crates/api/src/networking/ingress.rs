//! Routes from outside to services.

use super::{
    GROUP,
    ingress_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("Ingress", "ingresses")
        .prints(columns, cells)
        .short_names(["ing"])
        .status(DefaultStrategy)
        .stored_at("ingress")
}
