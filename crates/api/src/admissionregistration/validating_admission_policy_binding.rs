//! Bindings of validating admission policies.

use super::defaults::set_binding_defaults;
use super::group::GROUP;
use super::policy_binding_table;
use crate::declare::Declare;
use crate::plain::{Generation, PlainStrategy};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
        .prints(policy_binding_table::columns, policy_binding_table::cells)
        .ruled(RULES)
        .categories(["api-extensions"])
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .defaults(set_binding_defaults)
    .generation(Generation::Counted)
    .needs_resource_version();
