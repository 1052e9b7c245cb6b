//! The configuration file: reads and validates an `EncryptionConfiguration` of `apiserver.config.k8s.io/v1`
//! (<https://kubernetes.io/docs/reference/config-api/apiserver-config.v1/>).
//!
//! The result of [`read`] is valid: names are present, secrets are decoded and have a length that their algorithm
//! supports, every provider has exactly one type. Errors name file and field, and never contain a secret.

mod decode;
#[cfg(test)]
mod tests;
mod types;
mod validation;

pub(crate) use types::{Key, KmsApiVersion, KmsConfiguration, ProviderConfiguration, ResourceConfiguration};

use pintle_config_metrics::content_hash;
use pintle_go_forms::FileError;
use pintle_machinery::{ErrorList, config_file::ConfigFileError, status::aggregate};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The encryption rules of resources.
#[derive(Debug)]
pub(crate) struct EncryptionConfiguration {
    /// The rules, in order.
    pub(crate) resources: Vec<ResourceConfiguration>,
    /// The hash of the file's contents.
    pub(crate) hash: String,
}

/// The reason why a configuration file is unusable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncryptionConfigError {
    /// The file cannot be read.
    #[error(
        "error while parsing file: error while loading file: error reading encryption provider configuration file {path:?}: {source}"
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: FileError,
    },
    /// The file is empty.
    #[error(
        "error while parsing file: error while loading file: encryption provider configuration file {path:?} is empty"
    )]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a configuration.
    #[error(
        "error while parsing file: error decoding encryption provider configuration file {path:?}: {reason}"
    )]
    Decode {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: ConfigFileError,
    },
    /// Fields have invalid values.
    #[error("error while parsing file: {}", aggregate(.errors.iter().map(ToString::to_string)))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The errors of the fields.
        errors: ErrorList,
    },
    /// The parts of the configuration contradict each other, or are not supported.
    #[error("error while building transformers: {reason}")]
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
    let bytes = pintle_go_forms::read_file(path);
    let bytes = bytes.map_err(|source| EncryptionConfigError::Read { path: path.to_owned(), source })?;
    match bytes.is_empty() {
        true => Err(EncryptionConfigError::Empty { path: path.to_owned() }),
        false => Ok(Zeroizing::new(bytes)),
    }
}

/// Reads the configuration in a file. With `reload`, it may be read again when it changes.
pub(crate) fn read(path: &Path, reload: bool) -> Result<EncryptionConfiguration, EncryptionConfigError> {
    let bytes = read_file(path)?;
    let mut tree = decode::FILE
        .decode_strict(&bytes)
        .map_err(|reason| EncryptionConfigError::Decode { path: path.to_owned(), reason })?;
    let resources = validation::validate(&tree, reload);
    decode::wipe(&mut tree);
    match resources {
        Ok(resources) => Ok(EncryptionConfiguration { resources, hash: content_hash(&bytes) }),
        Err(errors) => Err(EncryptionConfigError::Invalid { path: path.to_owned(), errors }),
    }
}
