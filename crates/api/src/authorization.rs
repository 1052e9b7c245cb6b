//! `authorization.k8s.io`: access reviews.

mod access_review;
mod group;
pub mod local_subject_access_review;
pub mod self_subject_access_review;
pub mod self_subject_rules_review;
pub mod subject_access_review;

use pintle_registry::Resource;

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![
        local_subject_access_review::resource(),
        self_subject_access_review::resource(),
        self_subject_rules_review::resource(),
        subject_access_review::resource(),
    ]
}
