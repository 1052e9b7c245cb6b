//! Mutating admission policies: expressions that change objects.

mod strategy;
mod table;
mod validation;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;
pub(super) use strategy::STRATEGY;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("MutatingAdmissionPolicy", "mutatingadmissionpolicies")
        .prints(table::columns, table::cells)
        .ruled(STRATEGY)
        .categories(["api-extensions"])
        .in_force_when_answered()
        .stored_as("v1beta1")
}
