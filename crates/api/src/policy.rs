//! `policy`: disruption budgets of pods.

mod group;
pub mod pod_disruption_budget;

use pintle_registry::Resource;

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![pod_disruption_budget::resource()]
}
