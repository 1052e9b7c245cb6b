//! The versions of `autoscaling` that the kinds are declared in.

use crate::declare::Group;

pub(super) const V1: Group = Group::new("autoscaling", "v1", "k8s.io/api/autoscaling/v1");
pub(super) const V2: Group = Group::new("autoscaling", "v2", "k8s.io/api/autoscaling/v2");
