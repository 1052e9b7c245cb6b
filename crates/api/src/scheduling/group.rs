//! The versions of `scheduling.k8s.io` that the kinds are declared in.

use crate::declare::Group;

pub(super) const GROUP: Group = Group::new("scheduling.k8s.io", "v1", "k8s.io/api/scheduling/v1");
pub(super) const V1ALPHA2: Group =
    Group::new("scheduling.k8s.io", "v1alpha2", "k8s.io/api/scheduling/v1alpha2");
