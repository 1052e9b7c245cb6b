//! ECDSA by the combinations of curve and hash that Go verifies and the cryptographic library does not.

use p521::ecdsa::signature::hazmat::PrehashVerifier;
use rustls::pki_types::{AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, alg_id};
use sha2::{Digest, Sha256, Sha384, Sha512};

pub(crate) const P256_SHA512: &dyn SignatureVerificationAlgorithm =
    &Ecdsa { curve: Curve::P256, hash: Hash::Sha512 };
pub(crate) const P384_SHA512: &dyn SignatureVerificationAlgorithm =
    &Ecdsa { curve: Curve::P384, hash: Hash::Sha512 };
pub(crate) const P521_SHA256: &dyn SignatureVerificationAlgorithm =
    &Ecdsa { curve: Curve::P521, hash: Hash::Sha256 };
pub(crate) const P521_SHA384: &dyn SignatureVerificationAlgorithm =
    &Ecdsa { curve: Curve::P521, hash: Hash::Sha384 };
pub(crate) const P521_SHA512: &dyn SignatureVerificationAlgorithm =
    &Ecdsa { curve: Curve::P521, hash: Hash::Sha512 };

#[derive(Debug)]
struct Ecdsa {
    curve: Curve,
    hash: Hash,
}

#[derive(Debug)]
enum Curve {
    P256,
    P384,
    P521,
}

#[derive(Debug)]
enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    fn of(&self, message: &[u8]) -> Vec<u8> {
        match self {
            Hash::Sha256 => Sha256::digest(message).to_vec(),
            Hash::Sha384 => Sha384::digest(message).to_vec(),
            Hash::Sha512 => Sha512::digest(message).to_vec(),
        }
    }
}

/// Verifies a signature of a hash by the crate of a curve.
macro_rules! verify {
    ($curve:ident, $key:expr, $hash:expr, $signature:expr) => {{
        use $curve::ecdsa::{DerSignature, VerifyingKey};
        let key = VerifyingKey::from_sec1_bytes($key).map_err(|_| InvalidSignature)?;
        let signature = DerSignature::try_from($signature).map_err(|_| InvalidSignature)?;
        key.verify_prehash($hash, &signature).map_err(|_| InvalidSignature)
    }};
}

impl SignatureVerificationAlgorithm for Ecdsa {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        let hash = self.hash.of(message);
        match self.curve {
            Curve::P256 => verify!(p256, public_key, &hash, signature),
            Curve::P384 => verify!(p384, public_key, &hash, signature),
            Curve::P521 => verify!(p521, public_key, &hash, signature),
        }
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        match self.curve {
            Curve::P256 => alg_id::ECDSA_P256,
            Curve::P384 => alg_id::ECDSA_P384,
            Curve::P521 => alg_id::ECDSA_P521,
        }
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        match self.hash {
            Hash::Sha256 => alg_id::ECDSA_SHA256,
            Hash::Sha384 => alg_id::ECDSA_SHA384,
            Hash::Sha512 => alg_id::ECDSA_SHA512,
        }
    }
}
