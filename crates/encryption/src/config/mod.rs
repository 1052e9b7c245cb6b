//! The configuration file: `EncryptionConfiguration` of `apiserver.config.k8s.io/v1`
//! (<https://kubernetes.io/docs/reference/config-api/apiserver-config.v1/>), from bytes to types.
//!
//! What [`read`] returns is valid: names are there, secrets are decoded and as long as their algorithm wants, every
//! provider is exactly one. Errors name file and field and never what a secret holds.

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

/// Which resources are encrypted, and how.
#[derive(Debug)]
pub(crate) struct EncryptionConfiguration {
    /// The rules, in order.
    pub(crate) resources: Vec<ResourceConfiguration>,
    /// Tells this text of the file from others.
    pub(crate) hash: String,
}

/// One rule.
#[derive(Debug)]
pub(crate) struct ResourceConfiguration {
    /// The resources; `*` stands for all of a group, or with the group `*` for all.
    pub(crate) resources: Vec<GroupResource>,
    /// The providers, the one that writes first.
    pub(crate) providers: Vec<ProviderConfiguration>,
}

/// One provider.
#[derive(Debug)]
pub(crate) enum ProviderConfiguration {
    AesGcm(Vec<Key>),
    AesCbc(Vec<Key>),
    Secretbox(Vec<Key>),
    Identity,
    /// A key service, of version 1 or 2.
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

/// A key service.
#[derive(Debug)]
pub(crate) struct KmsConfiguration {
    pub(crate) api_version: KmsApiVersion,
    pub(crate) name: String,
    pub(crate) endpoint: Endpoint,
    /// How long a call may take.
    pub(crate) timeout: Duration,
}

/// The interface that a key service speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KmsApiVersion {
    V1,
    V2,
}

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncryptionConfigError {
    /// It cannot be read.
    #[error("error reading encryption provider configuration file {path:?}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Nothing is in it.
    #[error("encryption provider configuration file {path:?} is empty")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// It is no configuration.
    #[error("error decoding encryption provider configuration file {path:?}: {reason}")]
    Decode {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Fields of it are wrong.
    #[error("encryption provider configuration file {path:?} is invalid: {}", aggregate(.errors))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with them.
        errors: ErrorList,
    },
    /// Its parts do not fit together, or cannot be served.
    #[error("encryption provider configuration file {path:?}: error while building transformers: {reason}")]
    Build {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The key services that it names are not well, so that it is not put in force.
    #[error(
        "encryption provider configuration file {path:?}: health check for new transformers failed: {reason}"
    )]
    Unhealthy {
        /// The file.
        path: PathBuf,
        /// What the last check found.
        reason: String,
    },
}

/// The bytes of the file.
pub(crate) fn read_file(path: &Path) -> Result<Zeroizing<Vec<u8>>, EncryptionConfigError> {
    let bytes = std::fs::read(path);
    let bytes = bytes.map_err(|source| EncryptionConfigError::Read { path: path.to_owned(), source })?;
    match bytes.is_empty() {
        true => Err(EncryptionConfigError::Empty { path: path.to_owned() }),
        false => Ok(Zeroizing::new(bytes)),
    }
}

/// The configuration in a file. `reload` says that it will be read again when it changes.
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

/// All errors as one line, as Kubernetes prints several: in brackets, none of them twice.
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
