//! The aggregator: API services and the front of the server chain.

mod api_service;
mod auto_registration;
mod availability;
mod priority;

pub use auto_registration::{AutoRegistration, CustomGroupVersions};
pub use priority::group_priority;

use pintle_registry::Resource;

/// The resources of the aggregator itself: API services.
pub fn resources() -> Vec<Resource> {
    vec![api_service::resource()]
}
