//! A certificate chain and its private key. The certificate's version does not matter: `openssl x509 -req` without
//! extensions makes version 1, which `rustls` refuses to parse.

use crate::handshake_signature::key_of;
use rustls::{
    Error, InconsistentKeys,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer},
    sign::CertifiedKey,
};

/// The credentials of a chain, leaf first, and the leaf's private key.
///
/// # Errors
/// When the key is unsupported, the leaf cannot be parsed, or the key is not the leaf's.
pub fn certified_key(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, Error> {
    let certified = CertifiedKey::new(chain, provider.key_provider.load_private_key(key)?);
    let leaf = key_of(certified.end_entity_cert()?)?;
    match certified.key.public_key() {
        Some(own) if own != leaf => Err(InconsistentKeys::KeyMismatch.into()),
        // For a key that does not tell its public key, the handshake tells.
        _ => Ok(certified),
    }
}
