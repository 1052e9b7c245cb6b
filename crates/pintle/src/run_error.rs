//! The errors of the start.

use crate::certificates::CertificateError;
use pintle_authentication::TokenFileError;
use pintle_machinery::Status;
use pintle_storage::StorageError;
use std::{io, net::SocketAddr};

/// The reason why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The data directory cannot be used.
    #[error("{path}: {source}")]
    DataDir {
        /// The directory.
        path: String,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The store cannot be opened.
    #[error("opening the store: {0}")]
    Open(#[from] pintle_storage::OpenError),
    /// The etcd cluster cannot be used.
    #[error("opening the store: {0}")]
    OpenEtcd(#[from] pintle_storage::EtcdOpenError),
    /// Certificates cannot be loaded or generated.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// The token file cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// The encryption configuration cannot be used.
    #[error(transparent)]
    Encryption(#[from] pintle_encryption::EncryptionConfigError),
    /// The egress selector configuration cannot be used.
    #[error(transparent)]
    Egress(#[from] pintle_dialer::EgressConfigError),
    /// The authorization configuration cannot be used.
    #[error(transparent)]
    Authorization(#[from] pintle_authorization::AuthorizationError),
    /// The admission plugins cannot be created.
    #[error(transparent)]
    Admission(#[from] pintle_admission::AdmissionError),
    /// Listening on the port failed.
    #[error("listening on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The value of an option is invalid.
    #[error("{0}")]
    Options(String),
    /// The value of `--runtime-config` is invalid.
    #[error(transparent)]
    RuntimeConfig(#[from] pintle_apiserver::resource_config::RuntimeConfigError),
    /// A second signal ended the shutdown.
    #[error("a second signal ends the shutdown: requests are cut off")]
    Interrupted,
    /// The keys of service-account tokens cannot be used.
    #[error(transparent)]
    TokenKeys(#[from] pintle_service_account::TokenKeysError),
    /// A snapshot restore is running or was interrupted.
    #[error(
        "a snapshot (SHA-256 {sha256}) is being restored into {prefix}, or its restore was interrupted: repeat \
         `pintle snapshot restore` with it first"
    )]
    UnfinishedRestore {
        /// The key prefix of the restore.
        prefix: String,
        /// The SHA-256 of the snapshot.
        sha256: String,
    },
    /// The parts of the server do not fit together: a defect.
    #[error("assembling the server: {0}")]
    Assemble(String),
    /// The declarations of the resources do not fit together: a defect.
    #[error("assembling the server: {0}")]
    Declarations(#[from] pintle_apiserver::registry::DeclarationError),
    /// A metric is malformed or registered twice: a defect.
    #[error("assembling the server: {0}")]
    Metrics(#[from] prometheus::Error),
    /// Creating the objects of a new server failed.
    #[error("making the objects of a fresh server: {0}")]
    Bootstrap(Status),
    /// Creating the objects of a new server failed, and the key service that encrypts them has not become healthy.
    #[error("waiting for a key service ({why}): making the objects of a fresh server: {error}")]
    KeyService {
        /// The result of the key service's health check.
        why: String,
        /// The error of the objects.
        error: Status,
    },
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl RunError {
    /// The exit code of the process: that of kube-apiserver.
    pub fn exit_code(&self) -> u8 {
        match self {
            RunError::Admission(pintle_admission::AdmissionError::PluginFile { .. }) => 255,
            _ => 1,
        }
    }
}
