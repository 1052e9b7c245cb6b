//! `events.k8s.io`: events in the newer form.

pub mod conversion;
pub mod event;

use crate::declare::Group;
use pintle_registry::Resource;
use std::time::Duration;

pub(crate) const GROUP: Group = Group::new("events.k8s.io", "v1", "k8s.io/api/events/v1");

/// The resources of the group.
pub fn resources(event_ttl: Duration) -> Vec<Resource> {
    vec![event::resource(event_ttl)]
}
