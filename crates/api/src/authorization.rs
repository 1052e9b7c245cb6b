//! `authorization.k8s.io`: access reviews.

mod access_review;
pub mod local_subject_access_review;
pub mod self_subject_access_review;
pub mod self_subject_rules_review;
pub mod subject_access_review;

use crate::declare::Group;
use pintle_registry::Resource;

const GROUP_NAME: &str = "authorization.k8s.io";
pub(crate) const GROUP: Group = Group::new(GROUP_NAME, "v1", "k8s.io/api/authorization/v1");

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![
        local_subject_access_review::resource(),
        self_subject_access_review::resource(),
        self_subject_rules_review::resource(),
        subject_access_review::resource(),
    ]
}
