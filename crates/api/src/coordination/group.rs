//! The versions of `coordination.k8s.io` that the kinds are declared in.

use crate::declare::Group;

pub(super) const GROUP: Group = Group::new("coordination.k8s.io", "v1", "k8s.io/api/coordination/v1");
pub(super) const V1BETA1: Group =
    Group::new("coordination.k8s.io", "v1beta1", "k8s.io/api/coordination/v1beta1");
pub(super) const V1ALPHA2: Group =
    Group::new("coordination.k8s.io", "v1alpha2", "k8s.io/api/coordination/v1alpha2");
