//! The versions of `certificates.k8s.io` that the kinds are declared in.

use crate::declare::Group;

pub(super) const GROUP: Group = Group::new("certificates.k8s.io", "v1", "k8s.io/api/certificates/v1");
