//! Chains of certificates are verified without a panic, and only if they are issued by the anchor.

use pintle_x509::{TrustAnchors, Usage};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use std::time::Duration;

/// Splits the bytes into certificates, each after its length of two bytes, and verifies them as a chain, and each as an
/// anchor of the others.
pub(crate) fn verify(data: &[u8]) {
    let mut chain = Vec::new();
    let mut left = data;
    while let Some((length, rest)) = left.split_first_chunk::<2>() {
        let (one, rest) = rest.split_at(rest.len().min(u16::from_be_bytes(*length).into()));
        chain.push(CertificateDer::from(one.to_vec()));
        left = rest;
    }
    let now = UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000));
    let name = ServerName::try_from("a.example").ok();
    let mut others = TrustAnchors::default();
    for certificate in &chain {
        // Bytes that are no certificate are refused.
        let _ = others.add(certificate.clone());
    }
    let _ = others.verify(&chain, name.as_ref(), Usage::Server, now);
    let own = [
        include_bytes!("../../crates/x509/fixtures/authority.crt").as_slice(),
        include_bytes!("../../crates/x509/fixtures/version-one.crt"),
    ]
    .map(|pem| CertificateDer::from_pem_slice(pem).ok());
    let [Some(anchor), Some(issued)] = own else { return };
    let mut anchors = TrustAnchors::default();
    let _ = anchors.add(anchor.clone());
    // Nobody has the anchor's key: it issued itself and one certificate.
    if anchors.verify(&chain, None, Usage::Client, now).is_ok() {
        let leaf = chain.first().map(|one| signed(one));
        assert!(leaf == Some(signed(&anchor)) || leaf == Some(signed(&issued)));
    }
}

/// The signed part of a certificate of 256 bytes or more, whose header and that of the whole have four bytes each.
fn signed(der: &[u8]) -> Option<&[u8]> {
    let length = der.get(6..8).and_then(|length| length.try_into().ok()).map(u16::from_be_bytes)?;
    der.get(4..8 + usize::from(length))
}
