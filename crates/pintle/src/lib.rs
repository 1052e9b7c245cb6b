//! Runs the server: options → config → completed config → the server chain. The `pintle`
//! command adds the command line; without it, a Rust test can run a server in its own process.
//!
//! The chain is aggregator → kube API server → API extensions → not found, as in Kubernetes.

mod admission;
mod aggregation;
mod authentication;
mod authentication_config;
mod authorization;
mod auto_registration;
mod certificates;
mod check;
mod completed_config;
mod component_statuses;
mod config;
mod dynamic_files;
mod egress;
mod enablement;
mod encryption;
mod engine;
mod engines;
mod feature_metrics;
mod file_stamp;
mod flow_control;
mod hooks;
mod hostname;
mod kubeconfig;
mod kubelets;
mod lifecycle;
mod manifest_files;
mod openid_endpoints;
mod options;
mod peer_parts;
mod peers;
mod process_limits;
mod program_pages;
mod rest_mapper;
mod run;
mod run_error;
mod secure_serving;
mod server_chain;
mod storage_factory;
mod tokens;
mod version;

pub use check::check;
pub use options::{
    AdmissionOptions, AggregationOptions, AuditDeliveryOptions, AuditLogOptions, AuditOptions,
    AuditWebhookOptions, AuthenticationOptions, AuthorizationOptions, DebuggingOptions,
    EndpointReconcilerType, EtcdServersOverride, EtcdServersOverrides, FeatureOptions, KubeletOptions,
    LeadershipOptions, LoggingOptions, ManagementOptions, MetricsOptions, OidcOptions, Options, OutOfRange,
    PeerOptions, PriorityAndFairnessOptions, Refused, RequestHeaderOptions, ServiceAccountOptions,
    ServingOptions, SniCertKey, StorageBackend, StreamOptions, TokenWebhookOptions, TracingConfiguration,
    TracingOptions, VersionFlag, WatchCache,
};
pub use pintle_apiserver::{registry::StorageMediaType, resource_config::RuntimeConfig};
pub use process_limits::raise_descriptor_limit;
pub use program_pages::unmap_program_pages;
pub use run::{Running, start};
pub use run_error::RunError;
pub use version::{raw_version, version_line};

/// The identity of this server among those that share a store.
pub fn instance_id() -> String {
    pintle_controlplane::identity(&hostname::hostname())
}
