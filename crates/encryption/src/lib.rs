//! Encryption at rest (<https://kubernetes.io/docs/tasks/administer-cluster/encrypt-data/>).
//!
//! [`Encryption`] implements `--encryption-provider-config`: for each resource a
//! [`ValueTransformer`](pintle_storage::ValueTransformer), the last one before the engine, by the rules of the file.
//! Its stored form is that of kube-apiserver for the same file, so each can read the other's values.
//!
//! Invariants:
//! - no key and no value is ever in an error, a log line or a `Debug` output; keys are overwritten when they are
//!   dropped;
//! - a value can be read by any provider of its resource, whichever one is active for writes;
//! - a configuration is activated as a whole or not at all.

mod aes_cbc;
mod aes_gcm;
mod cipher;
mod config;
mod encryption;
mod extended_nonce;
mod failure;
mod identity;
mod key_ring;
mod kms;
mod metrics;
mod provider;
mod rules;
mod secretbox;
#[cfg(test)]
mod tests;

pub use config::EncryptionConfigError;
pub use encryption::{Encryption, EncryptionOptions};
pub use identity::identity;
pub use metrics::EncryptionMetrics;
