//! Encryption at rest (<https://kubernetes.io/docs/tasks/administer-cluster/encrypt-data/>).
//!
//! [`Encryption`] is what `--encryption-provider-config` asks for: for each resource a
//! [`ValueTransformer`](pintle_storage::ValueTransformer), the last one before the engine, by the rules of the file. What it
//! stores is what kube-apiserver stores for the same file, so that each reads what the other wrote.
//!
//! Invariants:
//! - no key and no value is ever in an error, a log line or a `Debug` output; keys are wiped when they go;
//! - a value is read by any provider of its resource, whatever is in force for writing;
//! - a configuration is put in force as a whole or not at all.

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
