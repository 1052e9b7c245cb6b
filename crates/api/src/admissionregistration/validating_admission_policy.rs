//! Validating admission policies: expressions that validate objects.

mod strategy;
mod table;
mod validation;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;
use strategy::StatusStrategy;

pub(super) use strategy::STRATEGY;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
        .prints(table::columns, table::cells)
        .ruled(STRATEGY)
        .categories(["api-extensions"])
        .in_force_when_answered()
        .status(StatusStrategy)
}
