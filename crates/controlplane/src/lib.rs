//! What the server itself does with the built-in groups: the objects that a fresh server has, and the controllers that
//! keep them and repair what crashes leave behind.
//!
//! [`bootstrap()`] makes the objects before the server is ready; [`run`] keeps them until it shuts down. Both go
//! through the server's own [`Registry`](pintle_registry::Registry), as any client's writes do, and are safe to run in
//! several servers of one store: each write is a create or a compare-and-swap towards the same state.

mod bootstrap;
mod cluster_authentication;
mod config;
mod controllers;
mod flow_control;
mod identity_lease;
mod kubernetes_service;
mod legacy_token_tracking;
mod master_leases;
mod objects;
mod priority_classes;
mod rbac_policy;
mod repair;
mod service_cidr;
mod system_namespaces;

pub use bootstrap::bootstrap;
pub use cluster_authentication::ClusterAuthentication;
pub use config::Config;
pub use controllers::run;
pub use flow_control::FlowControlController;
pub use identity_lease::identity;
pub use kubernetes_service::EndpointReconciler;
pub use master_leases::MasterLeases;
