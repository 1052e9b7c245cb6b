//! Where policies that judge objects apply.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .cluster("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
        .categories(["api-extensions"])
}
