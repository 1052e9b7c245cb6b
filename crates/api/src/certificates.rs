//! `certificates.k8s.io`: certificate signing requests.

pub mod certificate_signing_request;

use crate::declare::Group;
use pintle_registry::Resource;

pub(crate) const GROUP: Group = Group::new("certificates.k8s.io", "v1", "k8s.io/api/certificates/v1");

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![certificate_signing_request::resource()]
}
