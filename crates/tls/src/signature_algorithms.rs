//! The signature algorithms by which handshakes are verified.

use crate::nist_curves::{P256_SHA512, P384_SHA512, P521_SHA256, P521_SHA384, P521_SHA512};
use rustls::{
    SignatureScheme,
    crypto::{WebPkiSupportedAlgorithms, ring},
    pki_types::SignatureVerificationAlgorithm,
};
use std::sync::LazyLock;

type Algorithms = Vec<&'static dyn SignatureVerificationAlgorithm>;

/// The algorithms for each signature scheme of handshakes: those of the cryptographic library, and more of ECDSA.
pub(crate) fn supported() -> WebPkiSupportedAlgorithms {
    static BY_SCHEME: LazyLock<Vec<(SignatureScheme, Algorithms)>> = LazyLock::new(|| {
        let known = ring::default_provider().signature_verification_algorithms.mapping;
        let mut by_scheme: Vec<_> =
            known.iter().map(|(scheme, algorithms)| (*scheme, algorithms.to_vec())).collect();
        // A scheme of TLS 1.2 does not determine the curve. TLS 1.3 takes the first algorithm of a scheme.
        for (scheme, algorithms) in &mut by_scheme {
            match scheme {
                SignatureScheme::ECDSA_NISTP256_SHA256 => algorithms.push(&P521_SHA256),
                SignatureScheme::ECDSA_NISTP384_SHA384 => algorithms.push(&P521_SHA384),
                _ => {}
            }
        }
        by_scheme
            .push((SignatureScheme::ECDSA_NISTP521_SHA512, vec![&P521_SHA512, &P384_SHA512, &P256_SHA512]));
        by_scheme
    });
    static MAPPING: LazyLock<Vec<(SignatureScheme, &'static [&'static dyn SignatureVerificationAlgorithm])>> =
        LazyLock::new(|| {
            BY_SCHEME.iter().map(|(scheme, algorithms)| (*scheme, algorithms.as_slice())).collect()
        });
    // Certificates are verified elsewhere.
    let all = ring::default_provider().signature_verification_algorithms.all;
    WebPkiSupportedAlgorithms { all, mapping: &MAPPING }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    use webpki::EndEntityCert;

    #[test]
    fn a_key_on_p521_signs_handshakes_with_each_hash() {
        let certificate =
            CertificateDer::from_pem_slice(include_bytes!("../../x509/fixtures/p521.crt")).unwrap();
        let certificate = EndEntityCert::try_from(&certificate).unwrap();
        let signatures: [(SignatureScheme, &[u8]); 3] = [
            (SignatureScheme::ECDSA_NISTP256_SHA256, include_bytes!("../../x509/fixtures/p521.sha256")),
            (SignatureScheme::ECDSA_NISTP384_SHA384, include_bytes!("../../x509/fixtures/p521.sha384")),
            (SignatureScheme::ECDSA_NISTP521_SHA512, include_bytes!("../../x509/fixtures/p521.sha512")),
        ];
        for (scheme, signature) in signatures {
            let (_, algorithms) = supported().mapping.iter().find(|(known, _)| *known == scheme).unwrap();
            let is_signed = |message: &[u8]| {
                let mut all = algorithms.iter();
                all.any(|algorithm| certificate.verify_signature(*algorithm, message, signature).is_ok())
            };
            assert!(is_signed(b"message"), "{scheme:?}");
            assert!(!is_signed(b"massage"), "{scheme:?}");
        }
    }

    #[test]
    fn tls_1_3_verifies_a_scheme_by_its_own_curve() {
        let known = ring::default_provider().signature_verification_algorithms.mapping;
        for ((scheme, algorithms), (_, all)) in known.iter().zip(supported().mapping) {
            let keys = [algorithms.first(), all.first()].map(|first| first.unwrap().public_key_alg_id());
            assert_eq!(keys[0], keys[1], "{scheme:?}");
        }
    }
}
