//! Whether somebody may do something.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{Resource, Verb};

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("SubjectAccessReview", "subjectaccessreviews").verbs([Verb::Create]).unserved()
}
