//! `certificates.k8s.io`: certificate signing requests, trust bundles, certificates of pods.

pub mod certificate_signing_request;
pub mod cluster_trust_bundle;
mod group;
pub mod pod_certificate_request;
mod public_key;
mod request_signature;
mod rsa_pss;
mod signer_name;

use pintle_registry::Resource;

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![certificate_signing_request::resource()]
}

/// The resources in versions that are disabled by default.
pub fn resources_off_by_default() -> Vec<Resource> {
    vec![
        cluster_trust_bundle::resource(),
        cluster_trust_bundle::resource_v1alpha1(),
        pod_certificate_request::resource(),
    ]
}
