//! The signature by which an authority issued a certificate.

use crate::{VerifyError, certificate::Certificate, signature_algorithms};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use webpki::RawPublicKeyEntity;
use x509_parser::x509::AlgorithmIdentifier;

/// The kind of a public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    Rsa,
    Ecdsa,
    Ed25519,
}

/// An algorithm of signatures.
enum Algorithm {
    Of(KeyKind),
    Insecure(&'static str),
}

impl KeyKind {
    fn of(key: &AlgorithmIdentifier<'_>) -> Option<KeyKind> {
        Some(match key.algorithm.to_id_string().as_str() {
            "1.2.840.113549.1.1.1" => KeyKind::Rsa,
            "1.2.840.10045.2.1" => KeyKind::Ecdsa,
            "1.3.101.112" => KeyKind::Ed25519,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            KeyKind::Rsa => "RSA",
            KeyKind::Ecdsa => "ECDSA",
            KeyKind::Ed25519 => "Ed25519",
        }
    }

    fn type_in_go(self) -> &'static str {
        match self {
            KeyKind::Rsa => "*rsa.PublicKey",
            KeyKind::Ecdsa => "*ecdsa.PublicKey",
            KeyKind::Ed25519 => "ed25519.PublicKey",
        }
    }

    fn failure(self) -> &'static str {
        match self {
            KeyKind::Rsa => "crypto/rsa: verification error",
            KeyKind::Ecdsa => "x509: ECDSA verification failure",
            KeyKind::Ed25519 => "x509: Ed25519 verification failure",
        }
    }
}

impl Algorithm {
    /// `None` for algorithms that are not implemented.
    fn of(signature: &AlgorithmIdentifier<'_>) -> Option<Algorithm> {
        Some(match signature.algorithm.to_id_string().as_str() {
            "1.2.840.113549.1.1.4" => Algorithm::Insecure("MD5-RSA"),
            "1.2.840.113549.1.1.5" => Algorithm::Insecure("SHA1-RSA"),
            "1.2.840.10045.4.1" => Algorithm::Insecure("ECDSA-SHA1"),
            "1.2.840.113549.1.1.10"
            | "1.2.840.113549.1.1.11"
            | "1.2.840.113549.1.1.12"
            | "1.2.840.113549.1.1.13" => Algorithm::Of(KeyKind::Rsa),
            "1.2.840.10045.4.3.2" | "1.2.840.10045.4.3.3" | "1.2.840.10045.4.3.4" => {
                Algorithm::Of(KeyKind::Ecdsa)
            }
            "1.3.101.112" => Algorithm::Of(KeyKind::Ed25519),
            _ => return None,
        })
    }
}

/// Checks that `authority` may issue certificates, and signed this one.
///
/// # Errors
/// The reason why it did not.
pub(crate) fn check_issued_by(
    certificate: &Certificate<'_>,
    authority: &Certificate<'_>,
) -> Result<(), VerifyError> {
    let is_authority = match authority.basic {
        Some((is_authority, _)) => is_authority,
        None => !authority.is_version_three(),
    };
    if !is_authority || authority.may_sign == Some(false) {
        return Err(VerifyError::CannotSign);
    }
    let key = &authority.x509.tbs_certificate.subject_pki;
    let key_kind = KeyKind::of(&key.algorithm).ok_or(VerifyError::UnsupportedAlgorithm)?;
    let signature = &certificate.x509.signature_algorithm;
    let kind = match Algorithm::of(signature).ok_or(VerifyError::UnsupportedAlgorithm)? {
        Algorithm::Insecure(name) => return Err(VerifyError::InsecureAlgorithm(name)),
        Algorithm::Of(kind) if kind == key_kind => kind,
        Algorithm::Of(kind) => return Err(VerifyError::OtherKey(kind.name(), key_kind.type_in_go())),
    };
    let key = SubjectPublicKeyInfoDer::from(key.raw);
    let key = RawPublicKeyEntity::try_from(&key).map_err(|_| VerifyError::UnsupportedAlgorithm)?;
    let (signed, value) = (certificate.x509.tbs_certificate.as_ref(), &certificate.x509.signature_value.data);
    let mut error = VerifyError::UnsupportedAlgorithm;
    for algorithm in signature_algorithms() {
        if !is_algorithm(signature, algorithm.signature_alg_id().as_ref()) {
            continue;
        }
        match key.verify_signature(*algorithm, signed, value) {
            Ok(()) => return Ok(()),
            // The same algorithm on another curve.
            Err(webpki::Error::UnsupportedSignatureAlgorithmForPublicKeyContext(_)) => {}
            Err(_) => error = VerifyError::WrongSignature(kind.failure()),
        }
    }
    Err(error)
}

/// Whether a certificate names this algorithm, whose identifier is given without tag and length. Parameters count where
/// they determine the algorithm, as they do for RSA-PSS.
fn is_algorithm(named: &AlgorithmIdentifier<'_>, identifier: &[u8]) -> bool {
    let oid = named.algorithm.as_bytes();
    // The object identifier has a tag, and a length of one byte.
    let Some(parameters) = identifier.get(2..).and_then(|rest| rest.strip_prefix(oid)) else { return false };
    const PSS: &str = "1.2.840.113549.1.1.10";
    if named.algorithm.to_id_string() != PSS {
        return true;
    }
    named.parameters.as_ref().is_some_and(|named| !named.data.is_empty() && parameters.ends_with(named.data))
}
