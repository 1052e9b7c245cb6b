//! `events.k8s.io`: events in the newer form.

pub mod conversion;
pub mod event;
mod group;

use pintle_registry::Resource;
use std::time::Duration;

/// The resources of the group.
pub fn resources(event_ttl: Duration) -> Vec<Resource> {
    vec![event::resource(event_ttl)]
}
