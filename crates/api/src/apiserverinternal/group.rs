//! The versions of `internal.apiserver.k8s.io` that the kinds are declared in.

use crate::declare::Group;

pub(super) const V1ALPHA1: Group =
    Group::new("internal.apiserver.k8s.io", "v1alpha1", "k8s.io/api/apiserverinternal/v1alpha1");
