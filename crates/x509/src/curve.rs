//! The NIST curves (FIPS 186-4, appendix D.1.2) that Go's `crypto/x509` reads keys of.

use p256::ecdsa::signature::hazmat::PrehashVerifier;

/// A curve of ECDSA keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    /// P-224.
    P224,
    /// P-256.
    P256,
    /// P-384.
    P384,
    /// P-521.
    P521,
}

impl Curve {
    /// The curve with an object identifier in dotted form (RFC 5480, section 2.1.1.1).
    pub fn from_identifier(identifier: &str) -> Option<Curve> {
        Some(match identifier {
            "1.3.132.0.33" => Curve::P224,
            "1.2.840.10045.3.1.7" => Curve::P256,
            "1.3.132.0.34" => Curve::P384,
            "1.3.132.0.35" => Curve::P521,
            _ => return None,
        })
    }

    /// The curve's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Curve::P224 => "P-224",
            Curve::P256 => "P-256",
            Curve::P384 => "P-384",
            Curve::P521 => "P-521",
        }
    }

    /// Whether the bytes are the uncompressed form (SEC 1, section 2.3.3) of a point on the curve; on P-224, which no
    /// release of a library supports, whether they have its length.
    pub fn has_point(self, point: &[u8]) -> bool {
        point.first() == Some(&4)
            && match self {
                Curve::P224 => point.len() == 1 + 2 * 28,
                Curve::P256 => p256::ecdsa::VerifyingKey::from_sec1_bytes(point).is_ok(),
                Curve::P384 => p384::ecdsa::VerifyingKey::from_sec1_bytes(point).is_ok(),
                Curve::P521 => p521::ecdsa::VerifyingKey::from_sec1_bytes(point).is_ok(),
            }
    }

    /// Whether the key signed a message with a digest of any length; the signature is in ASN.1. Never on P-224.
    pub fn verifies(self, key: &[u8], digest: &[u8], signature: &[u8]) -> bool {
        match self {
            Curve::P224 => false,
            Curve::P256 => verifies(
                p256::ecdsa::VerifyingKey::from_sec1_bytes(key),
                p256::ecdsa::DerSignature::try_from(signature),
                digest,
            ),
            Curve::P384 => verifies(
                p384::ecdsa::VerifyingKey::from_sec1_bytes(key),
                p384::ecdsa::DerSignature::try_from(signature),
                digest,
            ),
            Curve::P521 => verifies(
                p521::ecdsa::VerifyingKey::from_sec1_bytes(key),
                p521::ecdsa::DerSignature::try_from(signature),
                digest,
            ),
        }
    }
}

fn verifies<K: PrehashVerifier<S>, S, E>(key: Result<K, E>, signature: Result<S, E>, digest: &[u8]) -> bool {
    let (Ok(key), Ok(signature)) = (key, signature) else { return false };
    key.verify_prehash(digest, &signature).is_ok()
}
