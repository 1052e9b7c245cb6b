//! The leases with the addresses at which the servers of one store reach each other, which are internal and not served to
//! clients.

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource. The objects have kube-apiserver's form and path, without name and uid.
pub fn resource() -> Resource {
    GROUP.cluster("Endpoints", "apiServerPeerIPInfo").verbs([]).stored_at("peerserverleases")
}
