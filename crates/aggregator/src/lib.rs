//! The aggregator: API services, and the first server of the delegation chain.

mod api_service;
mod auto_registration;
mod availability;
mod priority;

pub use auto_registration::{AutoRegistration, CustomGroupVersions};
pub use priority::group_priority;

use pintle_registry::Resource;

/// The declarations of the aggregator's own resources: API services.
pub fn resources() -> Vec<Resource> {
    vec![api_service::resource()]
}
