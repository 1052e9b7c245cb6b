//! The versions of `storage.k8s.io` that the kinds are declared in.

use crate::declare::Group;

pub(super) const GROUP: Group = Group::new("storage.k8s.io", "v1", "k8s.io/api/storage/v1");
pub(super) const V1BETA1: Group = Group::new("storage.k8s.io", "v1beta1", "k8s.io/api/storage/v1beta1");
