//! Cluster trust bundles: the certificates that workloads trust.

mod table;
mod validation;

use super::group::{V1ALPHA1, V1BETA1};
use crate::declare::{Declare, same_shape};
use crate::plain::PlainStrategy;
use pintle_feature_gates::Gate;
use pintle_registry::{Resource, SelectableField};

/// The declaration in the beta version, which is the storage version.
pub fn resource() -> Resource {
    V1BETA1
        .cluster("ClusterTrustBundle", "clustertrustbundles")
        .prints(table::columns, table::cells)
        .ruled(RULES)
        .selectable([SelectableField::new("spec.signerName")])
        .behind(Gate::ClusterTrustBundle)
}

/// The declaration in the alpha version.
pub fn resource_v1alpha1() -> Resource {
    let conversion = same_shape!("certificates.k8s.io/v1alpha1", "certificates.k8s.io/v1beta1");
    resource().in_version(V1ALPHA1, conversion).deprecated(34, 37, None)
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .takes_any_name()
    .needs_resource_version()
    .checked(validation::validate, validation::validate_update);
