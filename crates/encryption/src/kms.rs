//! `kms` in version 2: encrypts values with data keys, which a KMS plugin outside the server encrypts
//! (<https://kubernetes.io/docs/tasks/administer-cluster/kms-provider/>).
//!
//! A random seed, from which a key for each value is derived, is generated once and encrypted by the plugin; the
//! encrypted seed is stored beside every value. So writes make no call, and reads make one call per seed. A [`Probe`]
//! requests the plugin's key id once a minute, and generates a new seed when the key has changed. While the plugin is
//! unhealthy, values of cached seeds can still be read, and values can be written for three minutes.

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
