//! Reads and writes key files in PEM.

use crate::{KeyError, PublicKey, SigningKey};
use base64::{Engine, engine::general_purpose::STANDARD};
use rustls_pki_types::pem::{PemObject, SectionKind};
use zeroize::Zeroizing;

type Section = (SectionKind, Vec<u8>);

/// All public keys in a file of PEM blocks: of public keys, of certificates and of private keys. Other blocks are
/// skipped, as in Kubernetes.
///
/// # Errors
/// When there is no key.
/// When there is no key.
pub fn public_keys_from_pem(pem: &[u8]) -> Result<Vec<PublicKey>, KeyError> {
    let mut keys = Vec::new();
    for section in Section::pem_slice_iter(pem) {
        let Ok((kind, der)) = section.map(|(kind, der)| (kind, Zeroizing::new(der))) else { continue };
        let key = match kind {
            SectionKind::PublicKey => PublicKey::from_spki(&der),
            SectionKind::Certificate => PublicKey::from_certificate(&der),
            _ => private(kind, &der).and_then(Result::ok).map(|key| key.public().clone()),
        };
        keys.extend(key);
    }
    if keys.is_empty() { Err(KeyError::NoPublicKeys) } else { Ok(keys) }
}

/// The first private key in a file of PEM blocks.
pub(crate) fn signing_key_from_pem(pem: &[u8]) -> Result<SigningKey, KeyError> {
    let mut result = Err(KeyError::NoPrivateKey);
    for section in Section::pem_slice_iter(pem) {
        let Ok((kind, der)) = section.map(|(kind, der)| (kind, Zeroizing::new(der))) else { continue };
        match private(kind, &der) {
            Some(Ok(key)) => return Ok(key),
            Some(Err(error)) => result = Err(error),
            None => {}
        }
    }
    result
}

fn private(kind: SectionKind, der: &[u8]) -> Option<Result<SigningKey, KeyError>> {
    match kind {
        SectionKind::RsaPrivateKey => Some(SigningKey::from_rsa_der(der)),
        SectionKind::EcPrivateKey => Some(SigningKey::from_sec1(der, None)),
        SectionKind::PrivateKey => Some(SigningKey::from_pkcs8(der)),
        _ => None,
    }
}

/// Encodes a file of one block.
pub(crate) fn encode(label: &str, der: &[u8]) -> Zeroizing<String> {
    let body = Zeroizing::new(STANDARD.encode(der));
    let mut pem = Zeroizing::new(String::with_capacity(body.len() + body.len() / 64 + 2 * label.len() + 40));
    pem.push_str(&format!("-----BEGIN {label}-----\n"));
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at_checked(64).unwrap_or((rest, ""));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str(&format!("-----END {label}-----\n"));
    pem
}
