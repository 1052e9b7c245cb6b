//! `authentication.k8s.io`: reviews of tokens and of the caller's identity.

pub mod self_subject_review;
pub mod token_review;

use crate::{Config, declare::Group};
use pintle_registry::Resource;

pub(crate) const GROUP: Group = Group::new("authentication.k8s.io", "v1", "k8s.io/api/authentication/v1");

/// The resources of the group.
pub fn resources(config: &Config) -> Vec<Resource> {
    vec![self_subject_review::resource(), token_review::resource(&config.token_reviewer)]
}
