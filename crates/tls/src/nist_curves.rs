//! ECDSA by the combinations of curve and hash that Go verifies and the cryptographic library does not.

use pintle_x509::Curve;
use ring::digest;
use rustls::pki_types::{AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, alg_id};

pub(crate) static P256_SHA512: Ecdsa = Ecdsa::new((Curve::P256, alg_id::ECDSA_P256), SHA512);
pub(crate) static P384_SHA512: Ecdsa = Ecdsa::new((Curve::P384, alg_id::ECDSA_P384), SHA512);
pub(crate) static P521_SHA256: Ecdsa = Ecdsa::new((Curve::P521, alg_id::ECDSA_P521), SHA256);
pub(crate) static P521_SHA384: Ecdsa = Ecdsa::new((Curve::P521, alg_id::ECDSA_P521), SHA384);
pub(crate) static P521_SHA512: Ecdsa = Ecdsa::new((Curve::P521, alg_id::ECDSA_P521), SHA512);

const SHA256: Hash = (&digest::SHA256, alg_id::ECDSA_SHA256);
const SHA384: Hash = (&digest::SHA384, alg_id::ECDSA_SHA384);
const SHA512: Hash = (&digest::SHA512, alg_id::ECDSA_SHA512);

/// A hash, and the identifier of signatures over it.
type Hash = (&'static digest::Algorithm, AlgorithmIdentifier);

/// ECDSA with keys on one curve, over one hash.
#[derive(Debug)]
pub(crate) struct Ecdsa {
    curve: Curve,
    hash: &'static digest::Algorithm,
    key_identifier: AlgorithmIdentifier,
    signature_identifier: AlgorithmIdentifier,
}

impl Ecdsa {
    const fn new((curve, key_identifier): (Curve, AlgorithmIdentifier), hash: Hash) -> Ecdsa {
        let (hash, signature_identifier) = hash;
        Ecdsa { curve, hash, key_identifier, signature_identifier }
    }
}

impl SignatureVerificationAlgorithm for Ecdsa {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        let hash = digest::digest(self.hash, message);
        self.curve.verifies(public_key, hash.as_ref(), signature).then_some(()).ok_or(InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.key_identifier
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.signature_identifier
    }
}
