//! The versions of `authorization.k8s.io` that the kinds are declared in.

use crate::declare::Group;

pub(super) const GROUP_NAME: &str = "authorization.k8s.io";
pub(super) const GROUP: Group = Group::new(GROUP_NAME, "v1", "k8s.io/api/authorization/v1");
