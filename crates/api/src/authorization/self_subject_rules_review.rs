//! All that the caller may do in a namespace.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{Resource, Verb};

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("SelfSubjectRulesReview", "selfsubjectrulesreviews").verbs([Verb::Create]).unserved()
}
