//! `networking.k8s.io`: traffic to and between pods.

pub mod ingress;
pub mod ingress_class;
pub mod ip_address;
pub mod network_policy;
pub mod service_cidr;

use crate::declare::Group;
use pintle_registry::Resource;

pub(crate) const GROUP: Group = Group::new("networking.k8s.io", "v1", "k8s.io/api/networking/v1");

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![
        ingress_class::resource(),
        ingress::resource(),
        ip_address::resource(),
        network_policy::resource(),
        service_cidr::resource(),
    ]
}
