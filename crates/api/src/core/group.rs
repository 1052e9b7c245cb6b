//! The versions of the core group that the kinds are declared in.

use crate::declare::Group;

pub(super) const GROUP: Group = Group::new("", "v1", "k8s.io/api/core/v1");
