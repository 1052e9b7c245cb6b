//! `kms` in version 2: values encrypted by data keys, which a key service outside the server guards
//! (<https://kubernetes.io/docs/tasks/administer-cluster/kms-provider/>).
//!
//! A random seed, from which a key for each value is derived, is made once and given to the service to encrypt; the
//! encrypted seed is stored beside every value. So writing asks the service nothing, and reading asks it once a seed.
//! A [`Probe`] asks once a minute which key the service encrypts by, and makes a new seed when that has changed. When
//! the service is not well, reading what has been read before goes on, and writing does for three minutes.

mod data_keys;
mod endpoint;
mod messages;
mod object;
mod probe;
mod service;
#[cfg(test)]
mod tests;
mod transformer;

pub(crate) use endpoint::{Endpoint, EndpointError};
pub(crate) use probe::Probe;
pub(crate) use service::{GrpcService, KmsService};
pub(crate) use transformer::KmsTransformer;
