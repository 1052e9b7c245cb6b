//! `admissionregistration.k8s.io`: who is asked, and which expressions decide, before an object is written.

mod defaults;
pub mod mutating_admission_policy;
pub mod mutating_admission_policy_binding;
pub mod mutating_webhook_configuration;
mod parameters;
pub mod validating_admission_policy;
pub mod validating_admission_policy_binding;
pub mod validating_webhook_configuration;

use crate::declare::Group;
use pintle_registry::Resource;

pub(crate) const GROUP: Group =
    Group::new("admissionregistration.k8s.io", "v1", "k8s.io/api/admissionregistration/v1");

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![
        mutating_admission_policy::resource(),
        mutating_admission_policy_binding::resource(),
        mutating_webhook_configuration::resource(),
        validating_admission_policy::resource(),
        validating_admission_policy_binding::resource(),
        validating_webhook_configuration::resource(),
    ]
}
