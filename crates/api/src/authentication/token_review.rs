//! Whose a token is.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{Resource, Verb};

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("TokenReview", "tokenreviews").verbs([Verb::Create]).unserved()
}
