//! Limit ranges: limits for the resources of single objects in a namespace.

mod strategy;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP.namespaced("LimitRange", "limitranges").short_names(["limits"]).ruled(strategy::LimitRangeStrategy)
}
