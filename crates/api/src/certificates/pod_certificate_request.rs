//! Pod certificate requests: a kubelet requests a certificate for a pod.

mod status_validation;
mod strategy;
mod table;
mod validation;

use super::group::V1BETA1;
use crate::declare::Declare;
use pintle_feature_gates::Gate;
use pintle_registry::{Resource, SelectableField};

/// The declaration of the resource.
pub fn resource() -> Resource {
    V1BETA1
        .namespaced("PodCertificateRequest", "podcertificaterequests")
        .prints(table::columns, table::cells)
        .ruled(strategy::PodCertificateRequestStrategy)
        .status(strategy::StatusStrategy)
        .selectable(["spec.signerName", "spec.podName", "spec.nodeName"].map(SelectableField::new))
        .without_namespace_field()
        .behind(Gate::PodCertificateRequest)
}
