//! `policy`: disruption budgets of pods.

pub mod pod_disruption_budget;
pub(crate) mod pod_disruption_budget_table;

use crate::declare::Group;
use pintle_registry::Resource;

pub(crate) const GROUP: Group = Group::new("policy", "v1", "k8s.io/api/policy/v1");

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![pod_disruption_budget::resource()]
}
