//! The versions of `apps` that the kinds are declared in.

use crate::declare::Group;

pub(super) const GROUP: Group = Group::new("apps", "v1", "k8s.io/api/apps/v1");
