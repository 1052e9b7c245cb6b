//! The server's own objects, and the controllers that maintain them.
//!
//! Each controller is a file with a type that implements [`Controller`]: [`start`] creates its objects before the server
//! is ready, and [`run`] reconciles them until shutdown. Roles and bindings are created at the start only
//! ([`bootstrap_roles`]).

mod controller;

mod cluster_authentication;
mod coordinated_leader_election;
mod event_recorder;
mod flow_control;
mod identity_lease;
mod kubernetes_service;
mod legacy_token_tracking;
mod master_leases;
mod objects;
mod priority_classes;
mod rbac_policy;
mod repair;
mod server_leases;
mod service_cidr;
mod storage_versions;
mod system_namespaces;

#[cfg(test)]
mod tests;

pub use cluster_authentication::{ClusterAuthentication, ClusterAuthenticationInfo};
pub use controller::{Controller, run, start};
pub use coordinated_leader_election::{CoordinatedLeaderElection, LeadershipTimers};
pub use flow_control::{FlowControlController, FlowControlObjects};
pub use identity_lease::{
    COMPONENT, COMPONENT_LABEL, IdentityLease, IdentityLeaseGarbageCollector, identity,
};
pub use kubernetes_service::{EndpointReconciler, KubernetesService};
pub use legacy_token_tracking::LegacyTokenTracking;
pub use master_leases::MasterLeases;
pub use priority_classes::bootstrap_priority_classes;
pub use rbac_policy::bootstrap_roles;
pub use repair::{RepairedCaches, ServiceIpRepair};
pub use server_leases::ServerLeases;
pub use service_cidr::ServiceCidr;
pub use storage_versions::StorageVersions;
pub use system_namespaces::SystemNamespaces;
