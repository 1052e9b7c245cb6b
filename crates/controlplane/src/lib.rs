//! The server's own objects and controllers: creates the objects of a fresh server, reconciles them, and repairs leaks
//! of addresses and ports.
//!
//! [`bootstrap()`] creates the objects before the server is ready; [`run`] reconciles them until shutdown. Both use the
//! server's own [`Registry`](pintle_registry::Registry), so that the same strategies apply as for clients' writes, and
//! are safe in several servers of one store: each write is a create or a compare-and-swap towards the same state.

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
