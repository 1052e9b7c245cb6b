//! Bindings of validating admission policies.

mod strategy;
mod validation;

use super::{group::GROUP, policy_binding_table};
use crate::declare::Declare;
use pintle_registry::Resource;
pub(super) use strategy::STRATEGY;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
        .prints(policy_binding_table::columns, policy_binding_table::cells)
        .ruled(STRATEGY)
        .categories(["api-extensions"])
        .in_force_when_answered()
}
