//! Policies that change objects by expressions.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .cluster("MutatingAdmissionPolicy", "mutatingadmissionpolicies")
        .categories(["api-extensions"])
        .stored_as("v1beta1")
}
