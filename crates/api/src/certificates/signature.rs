//! Verifies the signature of a certificate request by its own key, with the messages of Go's `crypto/x509`.

use super::curve::Curve;
use ring::{
    digest,
    signature::{self as algorithms, ED25519, UnparsedPublicKey, VerificationAlgorithm},
};
use x509_parser::{
    certification_request::X509CertificationRequest, signature_algorithm::SignatureAlgorithm,
    x509::SubjectPublicKeyInfo,
};

const RSA: &str = "crypto/rsa: verification error";
const ECDSA: &str = "x509: ECDSA verification failure";
const EDWARDS: &str = "x509: Ed25519 verification failure";
const UNKNOWN: &str = "x509: cannot verify signature: algorithm unimplemented";

/// Verifies the signature of a request.
///
/// # Errors
/// The message when the signature is invalid or of an unsupported kind.
pub(super) fn check(request: &X509CertificationRequest<'_>) -> Result<(), String> {
    let key = &request.certification_request_info.subject_pki;
    let key_type = key.algorithm.algorithm.to_id_string();
    let algorithm = request.signature_algorithm.algorithm.to_id_string();
    let signed = Signed {
        message: request.certification_request_info.raw,
        key: &key.subject_public_key.data,
        signature: &request.signature_value.data,
    };
    let hash = match algorithm.as_str() {
        "1.2.840.113549.1.1.10" => pss_hash(request),
        _ => None,
    };
    match (algorithm.as_str(), key_type.as_str()) {
        ("1.2.840.113549.1.1.2" | "1.2.840.113549.1.1.4", _) => {
            let name = if algorithm.ends_with(".2") { "MD2-RSA" } else { "MD5-RSA" };
            Err(format!("x509: cannot verify signature: insecure algorithm {name}"))
        }
        ("1.2.840.113549.1.1.5", RSA_KEY) => {
            signed.verify(&algorithms::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA)
        }
        ("1.2.840.113549.1.1.11", RSA_KEY) => {
            signed.verify(&algorithms::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, RSA)
        }
        ("1.2.840.113549.1.1.12", RSA_KEY) => signed.verify(&algorithms::RSA_PKCS1_2048_8192_SHA384, RSA),
        ("1.2.840.113549.1.1.13", RSA_KEY) => {
            signed.verify(&algorithms::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY, RSA)
        }
        ("1.2.840.113549.1.1.10", RSA_KEY) => match hash {
            Some(Hash::Sha256) => signed.verify(&algorithms::RSA_PSS_2048_8192_SHA256, RSA),
            Some(Hash::Sha384) => signed.verify(&algorithms::RSA_PSS_2048_8192_SHA384, RSA),
            Some(Hash::Sha512) => signed.verify(&algorithms::RSA_PSS_2048_8192_SHA512, RSA),
            None => Err(UNKNOWN.to_owned()),
        },
        (algorithm, EC_KEY) if algorithm.starts_with("1.2.840.10045.4.") => {
            let curve = curve_of(key).ok_or("x509: unsupported elliptic curve")?;
            let hash = match algorithm {
                "1.2.840.10045.4.1" => &digest::SHA1_FOR_LEGACY_USE_ONLY,
                "1.2.840.10045.4.3.2" => &digest::SHA256,
                "1.2.840.10045.4.3.3" => &digest::SHA384,
                "1.2.840.10045.4.3.4" => &digest::SHA512,
                _ => return Err(UNKNOWN.to_owned()),
            };
            signed.verify_ecdsa(curve, hash)
        }
        ("1.3.101.112", "1.3.101.112") => signed.verify(&ED25519, EDWARDS),
        _ => Err(UNKNOWN.to_owned()),
    }
}

pub(super) const RSA_KEY: &str = "1.2.840.113549.1.1.1";
pub(super) const EC_KEY: &str = "1.2.840.10045.2.1";

/// The curve that the parameters of a key name; `None` if it is unknown.
pub(super) fn curve_of(key: &SubjectPublicKeyInfo<'_>) -> Option<Curve> {
    let identifier = key.algorithm.parameters.as_ref()?.as_oid().ok()?;
    Curve::from_identifier(&identifier.to_id_string())
}

/// Whether a key on a curve signed the SHA-256 of a message.
pub(super) fn verifies_ecdsa(curve: Curve, key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    Signed { message, key, signature }.verify_ecdsa(curve, &digest::SHA256).is_ok()
}

/// Whether an Ed25519 key signed a message.
pub(super) fn verifies_ed25519(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    Signed { message, key, signature }.verify(&ED25519, EDWARDS).is_ok()
}

#[derive(Clone, Copy)]
enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

fn pss_hash(request: &X509CertificationRequest<'_>) -> Option<Hash> {
    let SignatureAlgorithm::RSASSA_PSS(parameters) =
        SignatureAlgorithm::try_from(&request.signature_algorithm).ok()?
    else {
        return None;
    };
    match parameters.hash_algorithm_oid().to_id_string().as_str() {
        "2.16.840.1.101.3.4.2.1" => Some(Hash::Sha256),
        "2.16.840.1.101.3.4.2.2" => Some(Hash::Sha384),
        "2.16.840.1.101.3.4.2.3" => Some(Hash::Sha512),
        _ => None,
    }
}

struct Signed<'a> {
    message: &'a [u8],
    key: &'a [u8],
    signature: &'a [u8],
}

impl Signed<'_> {
    fn verify(&self, algorithm: &'static dyn VerificationAlgorithm, failure: &str) -> Result<(), String> {
        let key = UnparsedPublicKey::new(algorithm, self.key);
        key.verify(self.message, self.signature).map_err(|_| failure.to_owned())
    }

    fn verify_ecdsa(&self, curve: Curve, hash: &'static digest::Algorithm) -> Result<(), String> {
        if curve == Curve::P224 {
            return Err(UNKNOWN.to_owned());
        }
        let digest = digest::digest(hash, self.message);
        let verified = curve.verifies(self.key, digest.as_ref(), self.signature);
        verified.then_some(()).ok_or_else(|| ECDSA.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use crate::certificates::certificate_signing_request::pem::check_request;
    use base64::{Engine, engine::general_purpose::STANDARD};

    /// The request, and the same with one bit of its signature turned.
    fn with_other_signature(text: &str) -> String {
        let body: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
        let mut der = STANDARD.decode(body).unwrap();
        // The last byte belongs to a number of the signature, or to all of it.
        *der.last_mut().unwrap() ^= 1;
        let mut pem = "-----BEGIN CERTIFICATE REQUEST-----\n".to_owned();
        for line in STANDARD.encode(der).as_bytes().chunks(64) {
            pem.push_str(std::str::from_utf8(line).unwrap());
            pem.push('\n');
        }
        pem + "-----END CERTIFICATE REQUEST-----\n"
    }

    #[test]
    fn requests_are_signed_by_their_own_keys() {
        for (request, failure) in [
            (include_str!("certificate_signing_request/testdata/rsa-sha256.csr"), super::RSA),
            (include_str!("certificate_signing_request/testdata/rsa-sha384.csr"), super::RSA),
            (include_str!("certificate_signing_request/testdata/rsa-sha512.csr"), super::RSA),
            (include_str!("certificate_signing_request/testdata/rsa-pss.csr"), super::RSA),
            (include_str!("certificate_signing_request/testdata/p256.csr"), super::ECDSA),
            (include_str!("certificate_signing_request/testdata/p384.csr"), super::ECDSA),
            (include_str!("certificate_signing_request/testdata/p521.csr"), super::ECDSA),
            (include_str!("certificate_signing_request/testdata/p256-sha1.csr"), super::ECDSA),
            (include_str!("certificate_signing_request/testdata/p256-sha512.csr"), super::ECDSA),
            (include_str!("certificate_signing_request/testdata/p384-sha512.csr"), super::ECDSA),
            (include_str!("certificate_signing_request/testdata/p521-sha1.csr"), super::ECDSA),
            (include_str!("certificate_signing_request/testdata/ed25519.csr"), super::EDWARDS),
        ] {
            assert_eq!(check_request(request.as_bytes()), Ok(()));
            assert_eq!(check_request(with_other_signature(request).as_bytes()), Err(failure.to_owned()));
        }
        let insecure = "x509: cannot verify signature: insecure algorithm MD5-RSA";
        let request = include_str!("certificate_signing_request/testdata/rsa-md5.csr");
        assert_eq!(check_request(request.as_bytes()), Err(insecure.to_owned()));
        let request = include_str!("certificate_signing_request/testdata/p224.csr");
        assert_eq!(check_request(request.as_bytes()), Err(super::UNKNOWN.to_owned()));
        let request = include_str!("certificate_signing_request/testdata/secp256k1.csr");
        assert_eq!(check_request(request.as_bytes()), Err("x509: unsupported elliptic curve".to_owned()));
    }
}
