//! Limits of what single objects of a namespace may ask for.

mod strategy;

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP.namespaced("LimitRange", "limitranges").short_names(["limits"]).ruled(strategy::LimitRangeStrategy)
}
