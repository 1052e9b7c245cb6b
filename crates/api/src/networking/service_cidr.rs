//! Ranges that services get their addresses from.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("ServiceCIDR", "servicecidrs").status(DefaultStrategy)
}
