//! Runs the server: options → config → completed config → the server chain. It is everything of the `pintle` command but
//! the parsing of the command line, so that a Rust test can run a server in its own process.
//!
//! The chain is aggregator → kube API server → API extensions → not found, as in Kubernetes.

mod admission_options;
mod audit_options;
mod authentication;
mod authentication_config;
mod authentication_options;
mod authorization;
mod authorization_options;
mod auto_registration;
mod certificates;
mod completed_config;
mod config;
mod dynamic_files;
mod enablement;
mod encryption;
mod engine;
mod engines;
mod feature_gates;
mod flow_control;
mod hooks;
mod hostname;
mod kubeconfig;
mod oidc_options;
mod openapi_endpoints;
mod openid_endpoints;
mod option_flags;
mod options;
mod priority_and_fairness_options;
mod process_limits;
mod run;
mod run_error;
mod secure_serving;
mod server_chain;
mod service_account_options;
mod serving_options;
mod storage_factory;
mod storage_options;
mod tokens;
mod version;

pub use admission_options::AdmissionOptions;
pub use audit_options::{AuditDeliveryOptions, AuditLogOptions, AuditOptions, AuditWebhookOptions};
pub use authentication_options::{AuthenticationOptions, RequestHeaderOptions, TokenWebhookOptions};
pub use authorization_options::AuthorizationOptions;
pub use feature_gates::FeatureGates;
pub use oidc_options::OidcOptions;
pub use options::{EndpointReconcilerType, Options, StorageBackend};
pub use pintle_apiserver::{registry::StorageMediaType, resource_config::RuntimeConfig};
pub use priority_and_fairness_options::PriorityAndFairnessOptions;
pub use process_limits::raise_descriptor_limit;
pub use run::{Running, start};
pub use run_error::RunError;
pub use service_account_options::ServiceAccountOptions;
pub use serving_options::{ServingOptions, SniCertKey};
pub use storage_options::{EtcdServersOverride, EtcdServersOverrides, WatchCache};
