//! `authentication.k8s.io`: reviews of tokens and of the caller's identity.

mod group;
pub mod self_subject_review;
pub mod token_review;

use crate::Config;
use pintle_registry::Resource;

/// The resources of the group.
pub fn resources(config: &Config) -> Vec<Resource> {
    vec![self_subject_review::resource(), token_review::resource(&config.token_reviewer)]
}
