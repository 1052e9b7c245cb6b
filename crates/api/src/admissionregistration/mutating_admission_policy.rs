//! Mutating admission policies: expressions that change objects.

mod table;

use super::defaults::set_policy_defaults;
use super::group::GROUP;
use crate::declare::Declare;
use crate::plain::{Generation, PlainStrategy};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("MutatingAdmissionPolicy", "mutatingadmissionpolicies")
        .prints(table::columns, table::cells)
        .ruled(RULES)
        .categories(["api-extensions"])
        .stored_as("v1beta1")
}

const RULES: PlainStrategy =
    PlainStrategy::NEW.defaults(set_policy_defaults).generation(Generation::Counted).needs_resource_version();
