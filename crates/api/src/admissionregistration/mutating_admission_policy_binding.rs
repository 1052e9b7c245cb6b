//! Where policies that change objects apply.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .cluster("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings")
        .categories(["api-extensions"])
        .stored_as("v1beta1")
}
