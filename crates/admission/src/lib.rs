//! What may be written: the admission chain.
//!
//! After a request is decoded and authorized and before its object is stored, every plugin of the chain may change the
//! object ([`AdmissionPlugin::admit`]), and after validation every plugin may refuse it
//! ([`AdmissionPlugin::validate`])
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/>). Plugins run on every write of
//! every resource, so each first says by [`AdmissionPlugin::handles`] whether a request concerns it at all; only then a
//! future is made.
//!
//! A kind is named only in the plugin that is about it. There is no HTTP here and no storage: other objects are read
//! through a [`Lister`], or through the registry when the lister does not know.

mod chain;
mod lister;
mod plugin;
pub mod plugins;
mod request;
#[cfg(test)]
mod testing;

pub use chain::AdmissionChain;
pub use lister::{Lister, NoLister};
pub use plugin::AdmissionPlugin;
pub use request::{AdmissionRequest, Operation};
