//! `certificates.k8s.io`: certificate signing requests.

pub mod certificate_signing_request;
mod group;

use pintle_registry::Resource;

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![certificate_signing_request::resource()]
}
