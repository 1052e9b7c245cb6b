//! Who the caller is.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{Resource, Verb};

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("SelfSubjectReview", "selfsubjectreviews").verbs([Verb::Create]).unserved()
}
