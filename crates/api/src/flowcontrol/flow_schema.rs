//! Which requests belong together.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("FlowSchema", "flowschemas").status(DefaultStrategy)
}
