//! Runs the fuzz target of certificates on fixed mutations of chains.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

#[path = "../../../fuzz/src/certificates.rs"]
mod certificates;
#[path = "../../../fuzz/src/random.rs"]
mod random;

use random::Random;
use rustls_pki_types::{CertificateDer, pem::PemObject};

const ROUNDS: u32 = 4_000;

/// A chain as the target reads it.
fn chain(pems: &[&[u8]]) -> Vec<u8> {
    let ders = pems.iter().map(|pem| CertificateDer::from_pem_slice(pem).unwrap());
    ders.flat_map(|der| [&u16::try_from(der.len()).unwrap().to_be_bytes(), der.as_ref()].concat()).collect()
}

#[test]
fn certificates_hold() {
    let fixtures: [&[u8]; 4] = [
        include_bytes!("../fixtures/version-one.crt"),
        include_bytes!("../fixtures/authority.crt"),
        include_bytes!("../fixtures/p521.crt"),
        include_bytes!("../fixtures/p521-authority.crt"),
    ];
    let chains = [chain(&fixtures[..1]), chain(&fixtures[..2]), chain(&fixtures[2..]), chain(&fixtures)];
    let mut random = Random::default();
    for original in &chains {
        certificates::verify(original);
        for _ in 0..ROUNDS / 4 {
            let mut data = original.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(data.len());
                data[at] = u8::try_from(random.below(256)).unwrap();
            }
            certificates::verify(&data);
        }
    }
}
