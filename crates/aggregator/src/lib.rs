//! The aggregator: API services, and the first server of the delegation chain.

mod api_service;
mod api_services;
mod ask;
mod auto_registration;
mod availability;
mod backend;
mod condition;
mod discovery;
mod openapi;
mod priority;
mod proxy_handler;
pub mod remote_user;
mod servers;
mod service_directory;
#[cfg(test)]
mod testing;

pub use api_services::ApiServices;
pub use auto_registration::{AutoRegistration, CustomGroupVersions};
pub use availability::{AvailabilityMetrics, RemoteAvailability};
pub use backend::{Fetched, fetch};
pub use discovery::{
    DiscoveredGroup, DiscoveredVersions, DiscoveryManager, aggregated, aggregated_groups, legacy,
};
pub use openapi::OpenApiManager;
pub use priority::group_priority;
pub use proxy_handler::ProxyHandler;
pub use service_directory::{Routing, ServiceDirectory};

use pintle_registry::Resource;

/// The declarations of the aggregator's own resources: API services.
pub fn resources() -> Vec<Resource> {
    vec![api_service::resource()]
}
