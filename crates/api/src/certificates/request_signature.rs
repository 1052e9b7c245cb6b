//! Verifies the signature of a certificate request by its own key.

use pintle_x509::{SignatureError, Signed};
use x509_parser::certification_request::X509CertificationRequest;

/// Verifies the signature of a request; SHA-1 is allowed, as in Go.
///
/// # Errors
/// The reason why the signature does not count.
pub(super) fn check_signature(request: &X509CertificationRequest<'_>) -> Result<(), SignatureError> {
    let signed = Signed {
        message: request.certification_request_info.raw,
        algorithm: &request.signature_algorithm,
        signature: &request.signature_value.data,
    };
    signed.check(&request.certification_request_info.subject_pki, true)
}

#[cfg(test)]
mod tests {
    const RSA: &str = "crypto/rsa: verification error";
    const ECDSA: &str = "x509: ECDSA verification failure";
    const EDWARDS: &str = "x509: Ed25519 verification failure";
    const UNKNOWN: &str = "x509: cannot verify signature: algorithm unimplemented";

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
            (include_str!("certificate_signing_request/testdata/rsa-sha256.csr"), RSA),
            (include_str!("certificate_signing_request/testdata/rsa-sha384.csr"), RSA),
            (include_str!("certificate_signing_request/testdata/rsa-sha512.csr"), RSA),
            (include_str!("certificate_signing_request/testdata/rsa-pss.csr"), RSA),
            (include_str!("certificate_signing_request/testdata/p256.csr"), ECDSA),
            (include_str!("certificate_signing_request/testdata/p384.csr"), ECDSA),
            (include_str!("certificate_signing_request/testdata/p521.csr"), ECDSA),
            (include_str!("certificate_signing_request/testdata/p256-sha1.csr"), ECDSA),
            (include_str!("certificate_signing_request/testdata/p256-sha512.csr"), ECDSA),
            (include_str!("certificate_signing_request/testdata/p384-sha512.csr"), ECDSA),
            (include_str!("certificate_signing_request/testdata/p521-sha1.csr"), ECDSA),
            (include_str!("certificate_signing_request/testdata/ed25519.csr"), EDWARDS),
        ] {
            assert_eq!(check_request(request.as_bytes()), Ok(()));
            assert_eq!(check_request(with_other_signature(request).as_bytes()), Err(failure.to_owned()));
        }
        let insecure = "x509: cannot verify signature: insecure algorithm MD5-RSA";
        let request = include_str!("certificate_signing_request/testdata/rsa-md5.csr");
        assert_eq!(check_request(request.as_bytes()), Err(insecure.to_owned()));
        let request = include_str!("certificate_signing_request/testdata/p224.csr");
        assert_eq!(check_request(request.as_bytes()), Err(UNKNOWN.to_owned()));
        let request = include_str!("certificate_signing_request/testdata/secp256k1.csr");
        assert_eq!(check_request(request.as_bytes()), Err("x509: unsupported elliptic curve".to_owned()));
    }
}
