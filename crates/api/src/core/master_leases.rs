//! The leases of the servers of one store: the servers' own, which no client is served.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration. The objects are kube-apiserver's, at the same place in the store. They have neither name nor uid.
pub fn resource() -> Resource {
    GROUP.cluster("Endpoints", "apiServerIPInfo").verbs([]).stored_at("masterleases")
}
