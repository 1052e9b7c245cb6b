//! `networking.k8s.io`: traffic to pods and between them.

pub mod ingress;
pub mod ingress_class;
pub(crate) mod ingress_class_table;
pub(crate) mod ingress_table;
pub mod ip_address;
pub(crate) mod ip_address_table;
pub mod network_policy;
pub(crate) mod network_policy_table;
pub mod service_cidr;
pub(crate) mod service_cidr_table;

use crate::declare::{Declare, Group, same_shape};
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

const V1BETA1: Group = Group::new("networking.k8s.io", "v1beta1", "k8s.io/api/networking/v1beta1");

/// The resources in versions that are disabled by default.
pub fn resources_off_by_default() -> Vec<Resource> {
    let conversion = same_shape!("networking.k8s.io/v1beta1", "networking.k8s.io/v1");
    let in_beta = |resource: Resource| resource.in_version(V1BETA1, conversion).deprecated(34, 37, None);
    vec![in_beta(ip_address::resource()), in_beta(service_cidr::resource())]
}
