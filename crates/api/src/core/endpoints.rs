//! The addresses behind a service, all in one object.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("Endpoints", "endpoints").short_names(["ep"]).stored_at("services/endpoints")
}
