//! Reads the public keys of key files.

use crate::{KeyError, PublicKey, SigningKey, pem};
use rustls_pki_types::pem::SectionKind;

/// All public keys in a file of PEM blocks: of public keys, of certificates and of private keys. Other blocks are
/// skipped, as in Kubernetes.
///
/// # Errors
/// [`KeyError::NoPublicKeys`], when there is no key.
pub fn public_keys_from_pem(pem: &[u8]) -> Result<Vec<PublicKey>, KeyError> {
    let mut keys = Vec::new();
    for (kind, der) in pem::blocks(pem) {
        let key = match kind {
            SectionKind::PublicKey => PublicKey::from_spki(&der),
            SectionKind::Certificate => PublicKey::from_certificate(&der),
            _ => SigningKey::from_block(kind, &der).and_then(Result::ok).map(|key| key.public().clone()),
        };
        keys.extend(key);
    }
    if keys.is_empty() { Err(KeyError::NoPublicKeys) } else { Ok(keys) }
}
