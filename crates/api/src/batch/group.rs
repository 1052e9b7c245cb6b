//! The versions of `batch` that the kinds are declared in.

use crate::declare::Group;

pub(super) const GROUP: Group = Group::new("batch", "v1", "k8s.io/api/batch/v1");
