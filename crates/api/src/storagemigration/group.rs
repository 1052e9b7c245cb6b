//! The versions of `storagemigration.k8s.io` that the kinds are declared in.

use crate::declare::Group;

pub(super) const V1BETA1: Group =
    Group::new("storagemigration.k8s.io", "v1beta1", "k8s.io/api/storagemigration/v1beta1");
