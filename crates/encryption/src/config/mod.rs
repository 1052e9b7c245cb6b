//! The configuration file: reads and validates an `EncryptionConfiguration` of `apiserver.config.k8s.io/v1`
//! (<https://kubernetes.io/docs/reference/config-api/apiserver-config.v1/>).
//!
//! The result of [`read`] is valid: names are present, secrets are decoded and have a length that their algorithm
//! supports, every provider has exactly one type. Errors name file and field, and never contain a secret.

mod decode;
#[cfg(test)]
mod tests;
mod validation;

use crate::{kms::Endpoint, metrics::content_hash};
use pintle_machinery::{ErrorList, GroupResource};
use std::{
    fmt, io,
    path::{Path, PathBuf},
    time::Duration,
};
use zeroize::Zeroizing;

/// The encryption rules of resources.
#[derive(Debug)]
pub(crate) struct EncryptionConfiguration {
    /// The rules, in order.
    pub(crate) resources: Vec<ResourceConfiguration>,
    /// The hash of the file's contents.
    pub(crate) hash: String,
}

/// One rule.
#[derive(Debug)]
pub(crate) struct ResourceConfiguration {
    /// The resources; `*` stands for all resources of a group, or with the group `*` for all resources.
    pub(crate) resources: Vec<GroupResource>,
    /// The providers; the first one encrypts.
    pub(crate) providers: Vec<ProviderConfiguration>,
}

/// One provider.
#[derive(Debug)]
pub(crate) enum ProviderConfiguration {
    AesGcm(Vec<Key>),
    AesCbc(Vec<Key>),
    Secretbox(Vec<Key>),
    Identity,
    /// A KMS plugin, of API version 1 or 2.
    Kms(KmsConfiguration),
}

/// A key of a local provider.
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) secret: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A KMS plugin.
#[derive(Debug)]
pub(crate) struct KmsConfiguration {
    pub(crate) api_version: KmsApiVersion,
    pub(crate) name: String,
    pub(crate) endpoint: Endpoint,
    /// The time-out of a call.
    pub(crate) timeout: Duration,
}

/// The API version of a KMS plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KmsApiVersion {
    V1,
    V2,
}

/// The reason why a configuration file is unusable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncryptionConfigError {
    /// The file cannot be read.
    #[error("error reading encryption provider configuration file {path:?}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The file is empty.
    #[error("encryption provider configuration file {path:?} is empty")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a configuration.
    #[error("error decoding encryption provider configuration file {path:?}: {reason}")]
    Decode {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// Fields have invalid values.
    #[error("encryption provider configuration file {path:?} is invalid: {}", aggregate(.errors))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The errors of the fields.
        errors: ErrorList,
    },
    /// The parts of the configuration contradict each other, or are not supported.
    #[error("encryption provider configuration file {path:?}: error while building transformers: {reason}")]
    Build {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The KMS plugins of a changed configuration are unhealthy, so it is not activated.
    #[error(
        "encryption provider configuration file {path:?}: health check for new transformers failed: {reason}"
    )]
    Unhealthy {
        /// The file.
        path: PathBuf,
        /// The result of the last health check.
        reason: String,
    },
}

/// Reads the bytes of the file.
pub(crate) fn read_file(path: &Path) -> Result<Zeroizing<Vec<u8>>, EncryptionConfigError> {
    let bytes = std::fs::read(path);
    let bytes = bytes.map_err(|source| EncryptionConfigError::Read { path: path.to_owned(), source })?;
    match bytes.is_empty() {
        true => Err(EncryptionConfigError::Empty { path: path.to_owned() }),
        false => Ok(Zeroizing::new(bytes)),
    }
}

/// Reads the configuration in a file. With `reload`, it may be read again when it changes.
pub(crate) fn read(path: &Path, reload: bool) -> Result<EncryptionConfiguration, EncryptionConfigError> {
    let bytes = read_file(path)?;
    let decoded = decode::decode(&bytes);
    let mut tree =
        decoded.map_err(|reason| EncryptionConfigError::Decode { path: path.to_owned(), reason })?;
    let resources = validation::validate(&tree, reload);
    decode::wipe(&mut tree);
    match resources {
        Ok(resources) => Ok(EncryptionConfiguration { resources, hash: content_hash(&bytes) }),
        Err(errors) => Err(EncryptionConfigError::Invalid { path: path.to_owned(), errors }),
    }
}

/// All errors in one line, in Kubernetes' format: in brackets, without duplicates.
fn aggregate(errors: &ErrorList) -> String {
    let mut texts: Vec<String> = Vec::with_capacity(errors.len());
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}
