//! The versions of `events.k8s.io` that the kinds are declared in.

use crate::declare::Group;

pub(super) const GROUP: Group = Group::new("events.k8s.io", "v1", "k8s.io/api/events/v1");
