//! `networking.k8s.io`: traffic to pods and between them.

mod group;
pub mod ingress;
pub mod ingress_class;
pub mod ip_address;
pub mod network_policy;
pub mod service_cidr;

use crate::declare::{Declare, same_shape};
use group::V1BETA1;
use pintle_registry::Resource;

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

/// The resources in versions that are disabled by default.
pub fn resources_off_by_default() -> Vec<Resource> {
    let conversion = same_shape!("networking.k8s.io/v1beta1", "networking.k8s.io/v1");
    let in_beta = |resource: Resource| resource.in_version(V1BETA1, conversion).deprecated(34, 37, None);
    vec![in_beta(ip_address::resource()), in_beta(service_cidr::resource())]
}
