//! Bindings of mutating admission policies.

mod strategy;
mod validation;

use super::{group::GROUP, policy_binding_table};
use crate::declare::Declare;
use pintle_registry::Resource;
pub(super) use strategy::STRATEGY;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings")
        .prints(policy_binding_table::columns, policy_binding_table::cells)
        .ruled(STRATEGY)
        .categories(["api-extensions"])
        .in_force_when_answered()
        .stored_as("v1beta1")
}
