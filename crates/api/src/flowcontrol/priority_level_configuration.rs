//! Shares of the server.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("PriorityLevelConfiguration", "prioritylevelconfigurations").status(DefaultStrategy)
}
