//! The admission chain: plugins that change or refuse writes.
//!
//! After a request is decoded and authorized and before its object is stored, every plugin of the chain may change the
//! object ([`AdmissionPlugin::admit`]), and after validation every plugin may refuse it ([`AdmissionPlugin::validate`])
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/>). Plugins are consulted on every
//! write of every resource, so [`AdmissionPlugin::handles`] first decides cheaply whether a plugin applies; only then a
//! future is created.
//!
//! Only the plugin for a kind names that kind. This crate knows no HTTP and no storage: plugins read other objects
//! through a [`Lister`], or through the registry when the lister does not have them.

mod admission_configuration;
mod admission_error;
mod chain;
mod chain_config;
mod lister;
mod managed_fields;
mod metrics;
mod operation;
mod plugin;
mod plugin_settings;
pub mod plugins;
mod reinvocation;
mod request;
mod request_options;
mod rest_mapper;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod undecoded;
mod versions;

pub use admission_configuration::AdmissionConfiguration;
pub use admission_error::AdmissionError;
pub use chain::AdmissionChain;
pub use chain_config::{ChainConfig, PluginFactories};
pub use lister::{ListState, Lister};
pub use managed_fields::ManagedFieldsBefore;
pub use metrics::AdmissionMetrics;
pub use operation::Operation;
pub use plugin::{AdmissionPlugin, Step, Steps};
pub use plugin_settings::{PluginError, PluginFactory, PluginFlags, PluginSettings};
pub use reinvocation::Reinvocation;
pub use request::AdmissionRequest;
pub use request_options::RequestOptions;
pub use rest_mapper::{KindMapping, RestMapper};
pub use undecoded::Undecoded;
pub use versions::{Endpoint, RequestVersions};
