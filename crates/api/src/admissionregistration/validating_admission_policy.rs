//! Policies that judge objects by expressions.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .cluster("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
        .categories(["api-extensions"])
        .status(DefaultStrategy)
}
