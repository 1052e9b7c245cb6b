//! Authentication ([`authn`]) and authorization ([`authz`]) of users.
//!
//! This crate serves no HTTP: the server's filters extract credentials and attributes from requests.

mod anonymous;
mod audiences;
pub mod authn;
pub mod authz;
mod ca_bundle;
mod certificate_verifier;
mod expiring_cache;
mod front_proxy;
mod group;
mod metrics;
#[cfg(test)]
mod testing;
mod token_cache;
mod token_file;
mod union;
mod x509;

use std::{future::Future, pin::Pin};

pub use anonymous::Anonymous;
pub use audiences::AudienceAgnostic;
pub use ca_bundle::{Authorities, CaBundle, CaBundleError};
pub use front_proxy::{FrontProxy, RequestHeaders};
pub use group::with_authenticated_group;
pub use metrics::{AuthenticationMetrics, TokenCacheMetrics};
pub use token_cache::{TokenCache, TokenCacheConfig};
pub use token_file::{TokenFile, TokenFileError};
pub use union::{TokenUnion, Union};
pub use x509::ClientCertificates;

/// A boxed future, the return type of the object-safe traits here.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
