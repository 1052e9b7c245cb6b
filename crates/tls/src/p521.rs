//! Signatures by keys on the curve P-521, which Go verifies and the cryptographic library does not.

use p521::ecdsa::{
    DerSignature, VerifyingKey,
    signature::{Verifier, hazmat::PrehashVerifier},
};
use rustls::pki_types::{AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, alg_id};
use sha2::{Digest, Sha256, Sha384};

/// ECDSA with a key on P-521, for each hash that certificates and handshakes use.
pub(crate) const SHA256: &dyn SignatureVerificationAlgorithm = &P521 { hash: Hash::Sha256 };
pub(crate) const SHA384: &dyn SignatureVerificationAlgorithm = &P521 { hash: Hash::Sha384 };
pub(crate) const SHA512: &dyn SignatureVerificationAlgorithm = &P521 { hash: Hash::Sha512 };

#[derive(Debug)]
struct P521 {
    hash: Hash,
}

#[derive(Debug)]
enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl SignatureVerificationAlgorithm for P521 {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        let key = VerifyingKey::from_sec1_bytes(public_key).map_err(|_| InvalidSignature)?;
        let signature = DerSignature::try_from(signature).map_err(|_| InvalidSignature)?;
        let verified = match self.hash {
            Hash::Sha256 => key.verify_prehash(&Sha256::digest(message), &signature),
            Hash::Sha384 => key.verify_prehash(&Sha384::digest(message), &signature),
            Hash::Sha512 => key.verify(message, &signature),
        };
        verified.map_err(|_| InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ECDSA_P521
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        match self.hash {
            Hash::Sha256 => alg_id::ECDSA_SHA256,
            Hash::Sha384 => alg_id::ECDSA_SHA384,
            Hash::Sha512 => alg_id::ECDSA_SHA512,
        }
    }
}
