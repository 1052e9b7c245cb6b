//! The aggregator: API services, and the first server of the delegation chain
//! (<https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/>).
//!
//! ```text
//!   API services ──────────► ApiServices ──► Backend ──► ProxyHandler: requests
//!                                 ▲
//!   services, endpoints ──► ServiceDirectory
//!                                 │
//!     tasks, one per server: DiscoveryManager, OpenApiManager ──► documents of discovery and OpenAPI
//!     controllers: RemoteAvailability, AutoRegistration ──► status and objects of API services
//! ```
//!
//! An API service with a service gives a group and version to another server, its backend. The generic server asks
//! [`ProxyHandler`] for a handler behind all filters, before it serves a path of its own: authentication, authorization
//! and priority and fairness are not done here. Mutating and validating admission are left to the backend.
//!
//! Invariants:
//! - **A request waits for no backend but its own.** API services are an immutable snapshot ([`ApiServices`]), and the
//!   documents of backends are fetched in the background and published as a whole. A backend that does not answer keeps
//!   its last OpenAPI document, and is stale in discovery.
//! - **Requests reach a backend only while its API service is available.** Others get 503 without a connection.
//! - **A backend gets the user in headers, and not the `Authorization` header of the client** ([`remote_user`]). It trusts
//!   these headers because of the aggregator's client certificate.
//! - **Documents of backends are bounded** in size, in time, and in the number that are fetched at once.
//!
//! The crate knows no built-in kind but `APIService`, and the `Service` and `EndpointSlice` objects that
//! [`ServiceDirectory`] reads.

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
