//! `networking.k8s.io`: traffic to and between pods.

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
