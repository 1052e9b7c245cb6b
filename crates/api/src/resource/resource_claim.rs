//! Claims to devices.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("ResourceClaim", "resourceclaims").status(DefaultStrategy)
}
