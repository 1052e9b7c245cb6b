//! The versions of `policy` that the kinds are declared in.

use crate::declare::Group;

pub(super) const GROUP: Group = Group::new("policy", "v1", "k8s.io/api/policy/v1");
