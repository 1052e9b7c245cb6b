//! The keys of service-account tokens.

use crate::ExternalSigner;
use parking_lot::Mutex;
use pintle_durable_file::{Readers, replace};
use pintle_go_forms::{FileError, read_file};
use pintle_jwt::{KeyError, PublicKey, SigningKey, public_keys_from_pem};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// The reason why keys cannot be loaded or generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenKeysError {
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A file of verifying keys cannot be read.
    #[error(transparent)]
    Verifying(#[from] FileError),
    /// A file of verifying keys contains none.
    #[error("error reading public key file {}: {source}", path.display())]
    VerifyingKey {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: KeyError,
    },
    /// The file of the signing key cannot be read.
    #[error("failed to parse service-account-issuer-key-file: {0}")]
    Signing(FileError),
    /// The file of the signing key contains no key.
    #[error(
        "failed to parse service-account-issuer-key-file: error reading private key file {}: {source}",
        path.display()
    )]
    SigningKey {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: KeyError,
    },
    /// A file contains no key, or no key could be generated.
    #[error("{path}: {source}")]
    Key {
        /// The file.
        path: String,
        /// The reason.
        #[source]
        source: KeyError,
    },
}

/// The keys that sign and verify tokens. They do not change while the server runs, except those of an external signer.
///
/// The server's own key is generated on first use, because that takes longer than a start of the server; it is stored
/// in its file.
#[derive(Default)]
pub struct TokenKeys {
    loaded: OnceLock<Loaded>,
    /// The file of a generated key; locked during the generation.
    generated: Option<Mutex<PathBuf>>,
    /// Has the keys instead of this server.
    external: Option<ExternalSigner>,
}

struct Loaded {
    verifying: Vec<PublicKey>,
    signing: Option<SigningKey>,
}

impl TokenKeys {
    /// A set of given keys.
    pub fn new(verifying: Vec<PublicKey>, signing: Option<SigningKey>) -> TokenKeys {
        TokenKeys { loaded: OnceLock::from(Loaded { verifying, signing }), generated: None, external: None }
    }

    /// Loads keys from files: the verifying keys and the signing key, which also verifies when no other keys are
    /// given.
    ///
    /// # Errors
    /// When a file cannot be read or contains no key.
    pub fn from_files(
        key_files: &[PathBuf],
        signing_key_file: Option<&Path>,
    ) -> Result<TokenKeys, TokenKeysError> {
        let mut verifying: Vec<PublicKey> = Vec::new();
        for path in key_files {
            let keys = public_keys_from_pem(&read_file(path)?)
                .map_err(|source| TokenKeysError::VerifyingKey { path: path.clone(), source })?;
            for key in keys {
                if !verifying.contains(&key) {
                    verifying.push(key);
                }
            }
        }
        let signing = match signing_key_file {
            Some(path) => {
                let pem = read_file(path).map_err(TokenKeysError::Signing)?;
                let key = SigningKey::from_pem(&pem);
                Some(key.map_err(|source| TokenKeysError::SigningKey { path: path.to_owned(), source })?)
            }
            None => None,
        };
        if key_files.is_empty() {
            verifying.extend(signing.as_ref().map(|key| key.public().clone()));
        }
        Ok(TokenKeys::new(verifying, signing))
    }

    /// The server's own key in this file, which is generated on first use if the file does not exist.
    ///
    /// # Errors
    /// When the file exists and is unusable.
    pub fn generated(path: PathBuf) -> Result<TokenKeys, TokenKeysError> {
        let loaded = OnceLock::new();
        match fs::read(&path) {
            Ok(pem) => {
                let key = SigningKey::from_pem(&pem).map_err(|source| key_error(&path, source))?;
                let _ = loaded.set(own(key));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(file_error(&path, source)),
        }
        Ok(TokenKeys { loaded, generated: Some(Mutex::new(path)), external: None })
    }

    /// The keys of an external signer.
    pub fn external(signer: ExternalSigner) -> TokenKeys {
        TokenKeys { external: Some(signer), ..TokenKeys::default() }
    }

    /// The external signer, if it has the keys.
    pub fn signer(&self) -> Option<&ExternalSigner> {
        self.external.as_ref()
    }

    /// As [`TokenKeys::verifying`], also of an external signer, which is asked when it has not told a key with this id.
    pub(crate) async fn candidates(&self, key_id: &str) -> Vec<PublicKey> {
        match &self.external {
            Some(signer) => signer.verifying(key_id).await,
            None => self.verifying(key_id).cloned().collect(),
        }
    }

    /// The keys that are published. Blocks while the server generates its own key.
    ///
    /// # Errors
    /// When there are no keys.
    pub(crate) fn published(&self) -> Result<Vec<PublicKey>, TokenKeysError> {
        if let Some(signer) = &self.external {
            return Ok(signer.published());
        }
        self.ensure()?;
        Ok(self.verifying("").cloned().collect())
    }

    /// A number that changes with the keys.
    pub(crate) fn generation(&self) -> u64 {
        self.external.as_ref().map_or(0, ExternalSigner::generation)
    }

    /// The keys of this server that may have signed a token with this key id, or all keys for an empty id. A key that is not
    /// generated yet has signed nothing.
    pub fn verifying(&self, key_id: &str) -> impl Iterator<Item = &PublicKey> {
        let keys = self.loaded.get().map(|loaded| loaded.verifying.as_slice()).unwrap_or_default();
        keys.iter().filter(move |key| key_id.is_empty() || key.id() == key_id)
    }

    /// Whether tokens can be signed.
    pub fn can_sign(&self) -> bool {
        self.external.is_some()
            || self.generated.is_some()
            || self.loaded.get().is_some_and(|loaded| loaded.signing.is_some())
    }

    /// The signing key; `None` when it is not generated yet, or there is none.
    pub(crate) fn signing(&self) -> Option<&SigningKey> {
        self.loaded.get()?.signing.as_ref()
    }

    /// Ensures that the keys are loaded. Blocks while the server generates its own key, which it does once.
    ///
    /// # Errors
    /// When the key cannot be stored; the next call tries again.
    pub fn ensure(&self) -> Result<(), TokenKeysError> {
        let Some(path) = self.generated.as_ref().filter(|_| self.loaded.get().is_none()) else {
            return Ok(());
        };
        let path = path.lock();
        if self.loaded.get().is_some() {
            return Ok(());
        }
        let (key, pem) = SigningKey::generate_rsa().map_err(|source| key_error(&path, source))?;
        keep(&path, &pem).map_err(|source| file_error(&path, source))?;
        tracing::info!(file = %path.display(), "made a key for service-account tokens");
        let _ = self.loaded.set(own(key));
        Ok(())
    }
}

impl std::fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenKeys").finish_non_exhaustive()
    }
}

fn own(key: SigningKey) -> Loaded {
    Loaded { verifying: vec![key.public().clone()], signing: Some(key) }
}

/// Keeps a generated key, readable by its owner only.
fn keep(path: &Path, pem: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    replace(path, pem.as_bytes(), Readers::Owner)
}

fn file_error(path: &Path, source: io::Error) -> TokenKeysError {
    TokenKeysError::File { path: path.display().to_string(), source }
}

fn key_error(path: &Path, source: KeyError) -> TokenKeysError {
    TokenKeysError::Key { path: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_keys_is_named_with_its_use() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sa.pub");
        fs::write(&path, "no key").unwrap();
        let error = |verifying: &[PathBuf], signing: Option<&Path>| {
            TokenKeys::from_files(verifying, signing).err().unwrap().to_string()
        };
        let path = path.as_path();
        let expected = format!(
            "error reading public key file {}: data does not contain any valid RSA or ECDSA public keys",
            path.display()
        );
        assert_eq!(error(&[path.to_owned()], None), expected);
        let expected = format!(
            "failed to parse service-account-issuer-key-file: error reading private key file {}: data does not contain a \
             valid RSA or ECDSA private key",
            path.display()
        );
        assert_eq!(error(&[], Some(path)), expected);
    }
}
