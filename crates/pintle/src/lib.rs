//! Options → config → the server chain: everything of the `pintle` command but its flags, so that a Rust test can run a
//! server in its own process.
//!
//! The chain is aggregator → kube API server → API extensions → not found, as in Kubernetes.

mod audit_options;
mod authorization;
mod bootstrap;
mod certificates;
mod chain;
mod enablement;
mod encryption;
mod engine;
mod engines;
mod feature_gates;
mod kubeconfig;
mod openapi_endpoints;
mod options;
mod run;
mod storage_options;

pub use audit_options::{AuditDeliveryOptions, AuditLogOptions, AuditOptions, AuditWebhookOptions};
pub use feature_gates::FeatureGates;
pub use options::{EndpointReconcilerType, Options, StorageBackend};
pub use pintle_apiserver::{registry::StorageMediaType, resource_config::RuntimeConfig};
pub use run::{RunError, Running, start};
pub use storage_options::{EtcdServersOverride, EtcdServersOverrides, WatchCache};
