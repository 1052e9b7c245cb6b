//! Identities of pods.

mod strategy;
mod table;

use super::GROUP;
use crate::declare::Declare;
use pintle_machinery::GroupVersionKind;
use pintle_registry::{Resource, Verb};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("ServiceAccount", "serviceaccounts")
        .short_names(["sa"])
        .prints(table::columns, table::cells)
        .ruled(strategy::ServiceAccountStrategy)
        .connect_of(
            "token",
            GroupVersionKind::new("authentication.k8s.io", "v1", "TokenRequest"),
            [Verb::Create],
        )
}
