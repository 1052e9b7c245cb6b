//! The leases of the servers of one store, which are internal and not served to clients.

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource. The objects have kube-apiserver's form and path, without name and uid.
pub fn resource() -> Resource {
    GROUP.cluster("Endpoints", "apiServerIPInfo").verbs([]).stored_at("masterleases")
}
