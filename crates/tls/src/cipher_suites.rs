//! The cryptography of connections: cipher suites in their order, signature algorithms.

use crate::signature_algorithms;
use rustls::{CipherSuite, crypto::CryptoProvider};

/// The cryptography of all connections. Its suites are in the order of Go's TLS, AES with 128 bits before 256: a longer
/// key takes 14 rounds instead of 10 for each block, and 128 bits suffice
/// (<https://pkg.go.dev/crypto/tls#Config>, `CipherSuites`; [RFC 9325, section 4.2](https://www.rfc-editor.org/rfc/rfc9325#section-4.2)).
/// Keys on the curve P-521 are accepted, as in Go.
pub fn crypto_provider() -> CryptoProvider {
    let mut provider = rustls::crypto::ring::default_provider();
    provider.cipher_suites.sort_by_key(|suite| order(suite.suite()));
    provider.signature_verification_algorithms = signature_algorithms::supported();
    provider
}

/// Whether a client would rather have ChaCha20 than AES, since it has no instructions for AES: the first authenticated
/// cipher that it names tells.
pub fn prefers_chacha20(offered: &[CipherSuite]) -> bool {
    offered.iter().map(|suite| order(*suite)).find(|order| *order < OTHER) == Some(CHACHA20)
}

/// The place of suites that are not supported.
const OTHER: u8 = 3;
const CHACHA20: u8 = 2;

/// The place of a suite. Versions and keys of certificates never compete.
fn order(suite: CipherSuite) -> u8 {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256
        | CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
        | CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => 0,
        CipherSuite::TLS13_AES_256_GCM_SHA384
        | CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
        | CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => 1,
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256
        | CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
        | CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => CHACHA20,
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_suites_are_in_order() {
        let suites: Vec<CipherSuite> =
            crypto_provider().cipher_suites.iter().map(|suite| suite.suite()).collect();
        assert_eq!(suites.len(), rustls::crypto::ring::ALL_CIPHER_SUITES.len());
        assert_eq!(suites.first(), Some(&CipherSuite::TLS13_AES_128_GCM_SHA256));
        assert!(suites.iter().all(|suite| order(*suite) < OTHER));
        assert!(suites.is_sorted_by_key(|suite| order(*suite)));
    }

    #[test]
    fn the_first_authenticated_cipher_tells_the_preference() {
        let (aes, chacha20) =
            (CipherSuite::TLS13_AES_256_GCM_SHA384, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
        let other = CipherSuite::TLS_RSA_WITH_AES_128_CBC_SHA;
        assert!(prefers_chacha20(&[other, chacha20, aes]));
        assert!(!prefers_chacha20(&[other, aes, chacha20]));
        assert!(!prefers_chacha20(&[other]));
    }
}
