//! The versions of `resource.k8s.io` that the kinds are declared in.

use crate::declare::Group;

pub(super) const GROUP: Group = Group::new("resource.k8s.io", "v1", "k8s.io/api/resource/v1");
pub(super) const V1BETA2: Group = Group::new("resource.k8s.io", "v1beta2", "k8s.io/api/resource/v1beta2");
pub(super) const V1BETA1: Group = Group::new("resource.k8s.io", "v1beta1", "k8s.io/api/resource/v1beta1");
pub(super) const V1ALPHA3: Group = Group::new("resource.k8s.io", "v1alpha3", "k8s.io/api/resource/v1alpha3");
