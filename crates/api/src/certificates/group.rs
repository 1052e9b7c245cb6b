//! The versions of `certificates.k8s.io` that the kinds are declared in.

use crate::declare::Group;

pub(super) const GROUP: Group = Group::new("certificates.k8s.io", "v1", "k8s.io/api/certificates/v1");
pub(super) const V1BETA1: Group =
    Group::new("certificates.k8s.io", "v1beta1", "k8s.io/api/certificates/v1beta1");
pub(super) const V1ALPHA1: Group =
    Group::new("certificates.k8s.io", "v1alpha1", "k8s.io/api/certificates/v1alpha1");
