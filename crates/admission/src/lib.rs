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

mod chain;
mod lister;
mod operation;
mod plugin;
pub mod plugins;
mod reinvocation;
mod request;
mod request_options;
#[cfg(test)]
mod testing;
mod versions;

pub use chain::AdmissionChain;
pub use lister::Lister;
pub use operation::Operation;
pub use plugin::AdmissionPlugin;
pub use reinvocation::Reinvocation;
pub use request::AdmissionRequest;
pub use request_options::RequestOptions;
pub use versions::{Endpoint, RequestVersions};
