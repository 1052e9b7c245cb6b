//! Errors of certificates and their files.

use std::{fs, io, path::Path};

/// The reason why certificates cannot be loaded or generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// A file holds no usable certificate or key.
    #[error("{path}: {why}")]
    Pem {
        /// The file.
        path: String,
        /// The reason.
        why: String,
    },
    /// Generating a certificate failed.
    #[error("making a certificate failed: {0}")]
    Generate(#[from] rcgen::Error),
    /// The key of an authority is not there, though its certificate is: what clients trust is not replaced.
    #[error(
        "{key}: the key of {certificate} is missing: restore it, or delete the certificate for a new authority"
    )]
    KeyIsMissing {
        /// The file of the key.
        key: String,
        /// The file of the certificate.
        certificate: String,
    },
    /// The certificate of an authority does not verify what its key signs.
    #[error("{certificate}: is not the certificate of {key}")]
    OtherAuthority {
        /// The file of the certificate.
        certificate: String,
        /// The file of the key.
        key: String,
    },
    /// One of the two files of a pair was given without the other.
    #[error("missing filename for serving cert")]
    HalfAPair,
}

pub(super) fn read(path: &Path) -> Result<String, CertificateError> {
    fs::read_to_string(path).map_err(|source| file_error(path, source))
}

pub(super) fn file_error(path: &Path, source: io::Error) -> CertificateError {
    CertificateError::File { path: path.display().to_string(), source }
}
