//! Signatures of certificates and requests, with the messages of Go's `crypto/x509`.

use crate::Curve;
use ring::{
    digest,
    signature::{self as algorithms, ED25519, UnparsedPublicKey, VerificationAlgorithm},
};
use std::fmt;
use x509_parser::{
    signature_algorithm::SignatureAlgorithm,
    x509::{AlgorithmIdentifier, SubjectPublicKeyInfo},
};

/// The object identifier of RSA keys.
pub const RSA_KEY: &str = "1.2.840.113549.1.1.1";
/// The object identifier of keys on elliptic curves.
pub const EC_KEY: &str = "1.2.840.10045.2.1";
/// The object identifier of Ed25519 keys and of their signatures.
pub const ED25519_KEY: &str = "1.3.101.112";

/// The reason why a signature does not count. The texts are Go's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignatureError {
    /// The algorithm, of this name, is insecure.
    Insecure(&'static str),
    /// The algorithm, or the kind of the key, is not implemented.
    Unsupported,
    /// The key is on an unknown curve.
    UnsupportedCurve,
    /// The algorithm, named first, is for other keys than this one, whose type in Go is named second.
    OtherKey(&'static str, &'static str),
    /// The key did not make it.
    Wrong(&'static str),
}

impl fmt::Display for SignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SignatureError::Insecure(name) => {
                write!(f, "x509: cannot verify signature: insecure algorithm {name}")
            }
            SignatureError::Unsupported => {
                f.write_str("x509: cannot verify signature: algorithm unimplemented")
            }
            SignatureError::UnsupportedCurve => f.write_str("x509: unsupported elliptic curve"),
            SignatureError::OtherKey(algorithm, key) => write!(
                f,
                "x509: signature algorithm specifies an {algorithm} public key, but have public key of type {key}"
            ),
            SignatureError::Wrong(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for SignatureError {}

/// A kind of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rsa,
    Ecdsa,
    Ed25519,
}

impl Kind {
    fn of(key: &SubjectPublicKeyInfo<'_>) -> Option<Kind> {
        Some(match key.algorithm.algorithm.to_id_string().as_str() {
            RSA_KEY => Kind::Rsa,
            EC_KEY => Kind::Ecdsa,
            ED25519_KEY => Kind::Ed25519,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Rsa => "RSA",
            Kind::Ecdsa => "ECDSA",
            Kind::Ed25519 => "Ed25519",
        }
    }

    fn type_in_go(self) -> &'static str {
        match self {
            Kind::Rsa => "*rsa.PublicKey",
            Kind::Ecdsa => "*ecdsa.PublicKey",
            Kind::Ed25519 => "ed25519.PublicKey",
        }
    }

    fn failure(self) -> SignatureError {
        SignatureError::Wrong(match self {
            Kind::Rsa => "crypto/rsa: verification error",
            Kind::Ecdsa => "x509: ECDSA verification failure",
            Kind::Ed25519 => "x509: Ed25519 verification failure",
        })
    }
}

/// How a signature is verified.
enum Method {
    /// By this algorithm.
    Whole(&'static dyn VerificationAlgorithm),
    /// By ECDSA on the curve of the key, over this hash.
    Ecdsa(&'static digest::Algorithm),
}

/// The kind of the keys of an algorithm, the method, and the name of an algorithm with SHA-1.
fn method(
    algorithm: &AlgorithmIdentifier<'_>,
) -> Result<(Kind, Method, Option<&'static str>), SignatureError> {
    let rsa = |method| Ok((Kind::Rsa, Method::Whole(method), None));
    let ecdsa = |hash| Ok((Kind::Ecdsa, Method::Ecdsa(hash), None));
    match algorithm.algorithm.to_id_string().as_str() {
        "1.2.840.113549.1.1.4" => Err(SignatureError::Insecure("MD5-RSA")),
        "1.2.840.113549.1.1.5" => {
            let method = Method::Whole(&algorithms::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY);
            Ok((Kind::Rsa, method, Some("SHA1-RSA")))
        }
        "1.2.840.113549.1.1.10" => rsa(pss(algorithm).ok_or(SignatureError::Unsupported)?),
        "1.2.840.113549.1.1.11" => rsa(&algorithms::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY),
        "1.2.840.113549.1.1.12" => rsa(&algorithms::RSA_PKCS1_2048_8192_SHA384),
        "1.2.840.113549.1.1.13" => rsa(&algorithms::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY),
        "1.2.840.10045.4.1" => {
            Ok((Kind::Ecdsa, Method::Ecdsa(&digest::SHA1_FOR_LEGACY_USE_ONLY), Some("ECDSA-SHA1")))
        }
        "1.2.840.10045.4.3.2" => ecdsa(&digest::SHA256),
        "1.2.840.10045.4.3.3" => ecdsa(&digest::SHA384),
        "1.2.840.10045.4.3.4" => ecdsa(&digest::SHA512),
        ED25519_KEY => Ok((Kind::Ed25519, Method::Whole(&ED25519), None)),
        _ => Err(SignatureError::Unsupported),
    }
}

fn pss(algorithm: &AlgorithmIdentifier<'_>) -> Option<&'static dyn VerificationAlgorithm> {
    let SignatureAlgorithm::RSASSA_PSS(parameters) = SignatureAlgorithm::try_from(algorithm).ok()? else {
        return None;
    };
    Some(match parameters.hash_algorithm_oid().to_id_string().as_str() {
        "2.16.840.1.101.3.4.2.1" => &algorithms::RSA_PSS_2048_8192_SHA256,
        "2.16.840.1.101.3.4.2.2" => &algorithms::RSA_PSS_2048_8192_SHA384,
        "2.16.840.1.101.3.4.2.3" => &algorithms::RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

/// The algorithm for a curve and a hash, where `ring` has one: it is several times faster.
fn whole(curve: Curve, hash: &'static digest::Algorithm) -> Option<&'static dyn VerificationAlgorithm> {
    let is = |other: &digest::Algorithm| hash == other;
    Some(match curve {
        Curve::P256 if is(&digest::SHA256) => &algorithms::ECDSA_P256_SHA256_ASN1,
        Curve::P256 if is(&digest::SHA384) => &algorithms::ECDSA_P256_SHA384_ASN1,
        Curve::P384 if is(&digest::SHA256) => &algorithms::ECDSA_P384_SHA256_ASN1,
        Curve::P384 if is(&digest::SHA384) => &algorithms::ECDSA_P384_SHA384_ASN1,
        _ => return None,
    })
}

/// Signed bytes, with their signature.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    /// The signed bytes.
    pub message: &'a [u8],
    /// The algorithm of the signature.
    pub algorithm: &'a AlgorithmIdentifier<'a>,
    /// The signature.
    pub signature: &'a [u8],
}

impl Signed<'_> {
    /// Verifies the signature by a key. SHA-1 counts as insecure unless it is allowed.
    ///
    /// # Errors
    /// The reason why the signature does not count.
    pub fn check(&self, key: &SubjectPublicKeyInfo<'_>, allows_sha1: bool) -> Result<(), SignatureError> {
        let (kind, method, name_with_sha1) = method(self.algorithm)?;
        if let Some(name) = name_with_sha1
            && !allows_sha1
        {
            return Err(SignatureError::Insecure(name));
        }
        let own = Kind::of(key).ok_or(SignatureError::Unsupported)?;
        if own != kind {
            return Err(SignatureError::OtherKey(kind.name(), own.type_in_go()));
        }
        let bytes = &key.subject_public_key.data;
        let by =
            |algorithm| UnparsedPublicKey::new(algorithm, bytes).verify(self.message, self.signature).is_ok();
        let verified = match method {
            Method::Whole(algorithm) => by(algorithm),
            Method::Ecdsa(hash) => match curve_of(key).ok_or(SignatureError::UnsupportedCurve)? {
                Curve::P224 => return Err(SignatureError::Unsupported),
                curve => match whole(curve, hash) {
                    Some(algorithm) => by(algorithm),
                    None => {
                        let hash = digest::digest(hash, self.message);
                        curve.verifies(bytes, hash.as_ref(), self.signature)
                    }
                },
            },
        };
        verified.then_some(()).ok_or_else(|| kind.failure())
    }
}

/// The curve that the parameters of a key name; `None` if it is unknown.
pub fn curve_of(key: &SubjectPublicKeyInfo<'_>) -> Option<Curve> {
    let identifier = key.algorithm.parameters.as_ref()?.as_oid().ok()?;
    Curve::from_identifier(&identifier.to_id_string())
}
