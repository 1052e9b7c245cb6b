//! Whether somebody may do something in a namespace.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{Resource, Verb};

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("LocalSubjectAccessReview", "localsubjectaccessreviews").verbs([Verb::Create]).unserved()
}
