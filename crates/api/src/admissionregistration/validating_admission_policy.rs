//! Validating admission policies: expressions that validate objects.

mod table;

use super::defaults::set_policy_defaults;
use super::group::GROUP;
use crate::declare::Declare;
use crate::plain::{Generation, PlainStatusStrategy, PlainStrategy};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
        .prints(table::columns, table::cells)
        .ruled(RULES)
        .categories(["api-extensions"])
        .status(PlainStatusStrategy { keeps_metadata: true })
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .defaults(set_policy_defaults)
    .generation(Generation::Counted)
    .with_status()
    .needs_resource_version();
