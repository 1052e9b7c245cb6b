//! Public keys, as Go's `crypto/x509` reads them from certificates, requests and PKIX structures.

use super::rsa_pss;
use pintle_x509::{Curve, EC_KEY, ED25519_KEY, RSA_KEY, curve_of};
use ring::{
    digest,
    signature::{ED25519, UnparsedPublicKey},
};
use x509_parser::{prelude::FromDer, public_key::PublicKey as Parsed, x509::SubjectPublicKeyInfo};

/// Keys that Go reads, but that sign nothing or are outdated: X25519, DSA.
const OTHER_KEYS: [&str; 2] = ["1.3.101.110", "1.2.840.10040.4.1"];

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PublicKey {
    /// Ed25519.
    Ed25519(Vec<u8>),
    /// ECDSA: the curve, and a point on it.
    Ecdsa(Curve, Vec<u8>),
    /// RSA: the size of the modulus in bits, a multiple of eight, and the encoded key.
    Rsa(usize, Vec<u8>),
    /// A key of another type.
    Other,
}

impl PublicKey {
    /// Reads a PKIX structure; `None` if it is malformed or of an unknown type.
    pub(super) fn from_der(der: &[u8]) -> Option<PublicKey> {
        let ([], info) = SubjectPublicKeyInfo::from_der(der).ok()? else { return None };
        PublicKey::of(&info)
    }

    /// The key of a certificate or request; `None` if it is malformed or of an unknown type.
    pub(super) fn of(info: &SubjectPublicKeyInfo<'_>) -> Option<PublicKey> {
        let bytes = info.subject_public_key.data.to_vec();
        match info.algorithm.algorithm.to_id_string().as_str() {
            ED25519_KEY => (bytes.len() == 32).then_some(PublicKey::Ed25519(bytes)),
            EC_KEY => {
                let curve = curve_of(info)?;
                curve.has_point(&bytes).then_some(PublicKey::Ecdsa(curve, bytes))
            }
            RSA_KEY => match info.parsed().ok()? {
                Parsed::RSA(key) => {
                    let modulus = key.modulus.iter().skip_while(|byte| **byte == 0).count();
                    Some(PublicKey::Rsa(modulus * 8, bytes))
                }
                _ => None,
            },
            other => OTHER_KEYS.contains(&other).then_some(PublicKey::Other),
        }
    }

    /// The reason why the key is too weak for a certificate of a pod, if it is: the shown value, and the detail.
    pub(super) fn weakness(&self) -> Option<(String, &'static str)> {
        match self {
            PublicKey::Ecdsa(curve @ Curve::P224, _) => Some((
                format!("curve {}", curve.name()),
                "elliptic public keys must use curve P256, P384, or P521",
            )),
            PublicKey::Rsa(bits, _) if ![3072, 4096].contains(bits) => {
                Some((format!("{bits}-bit modulus"), "RSA keys must have modulus size 3072 or 4096"))
            }
            _ => None,
        }
    }

    /// Verifies a signature of a message: by ECDSA and RSA-PSS over its SHA-256, by Ed25519 over itself.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            PublicKey::Ed25519(key) => {
                UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_ok()
            }
            PublicKey::Ecdsa(curve, key) => {
                curve.verifies(key, digest::digest(&digest::SHA256, message).as_ref(), signature)
            }
            PublicKey::Rsa(_, key) => rsa_pss::verifies(key, message, signature),
            PublicKey::Other => false,
        }
    }
}
