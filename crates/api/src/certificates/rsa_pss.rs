//! Verifies RSA-PSS signatures over SHA-256 with a salt of any length (<https://www.rfc-editor.org/rfc/rfc8017#section-9.1.2>).
//!
//! Go signs with the longest salt that fits, whereas `ring` accepts one of the hash's length only.

use num_bigint::BigUint;
use sha2::{Digest, Sha256};
use x509_parser::{prelude::FromDer, public_key::RSAPublicKey};

const HASH_LENGTH: usize = 32;
/// The maximum size of a modulus in bits, which bounds the work.
const MAX_BITS: u64 = 4096;
/// The maximum size of a public exponent in bits.
const MAX_EXPONENT_BITS: u64 = 32;

/// Whether the key, in PKCS #1 form, signed the SHA-256 of the message.
pub(super) fn verifies(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    check(key, message, signature).is_some()
}

fn check(key: &[u8], message: &[u8], signature: &[u8]) -> Option<()> {
    let ([], key) = RSAPublicKey::from_der(key).ok()? else { return None };
    let (modulus, exponent) = (BigUint::from_bytes_be(key.modulus), BigUint::from_bytes_be(key.exponent));
    let size = usize::try_from(modulus.bits().div_ceil(8)).ok()?;
    let signed = BigUint::from_bytes_be(signature);
    let is_small = modulus.bits() <= MAX_BITS && exponent.bits() <= MAX_EXPONENT_BITS;
    if !is_small || signature.len() != size || signed >= modulus {
        return None;
    }
    let bits = modulus.bits() - 1;
    let length = usize::try_from(bits.div_ceil(8)).ok()?;
    let opened = signed.modpow(&exponent, &modulus).to_bytes_be();
    let mut encoded = vec![0; length.checked_sub(opened.len())?];
    encoded.extend(opened);
    let (block, tail) = encoded.split_at_checked(length.checked_sub(HASH_LENGTH + 1)?)?;
    let hash = tail.strip_suffix(&[0xbc])?;
    let unused = u32::try_from(8 * length as u64 - bits).ok()?;
    let used = 0xff_u8.checked_shr(unused)?;
    if block.first()? & !used != 0 {
        return None;
    }
    let mut block: Vec<u8> =
        block.iter().zip(mask(hash, block.len())).map(|(byte, mask)| byte ^ mask).collect();
    *block.first_mut()? &= used;
    let start = block.iter().position(|byte| *byte != 0)?;
    let salt = block.get(start..)?.strip_prefix(&[1])?;
    let mut digest = Sha256::new();
    digest.update([0; 8]);
    digest.update(Sha256::digest(message));
    digest.update(salt);
    (digest.finalize().as_slice() == hash).then_some(())
}

/// The mask of a length that a seed generates.
fn mask(seed: &[u8], length: usize) -> Vec<u8> {
    let mut mask = Vec::with_capacity(length + HASH_LENGTH);
    for counter in 0_u32.. {
        if mask.len() >= length {
            break;
        }
        let mut digest = Sha256::new();
        digest.update(seed);
        digest.update(counter.to_be_bytes());
        mask.extend_from_slice(&digest.finalize());
    }
    mask.truncate(length);
    mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::{Engine, engine::general_purpose::STANDARD};

    #[test]
    fn salts_of_any_length_are_accepted() {
        let decode = |text: &str| STANDARD.decode(text.replace('\n', "")).unwrap();
        let key = decode(include_str!("testdata/rsa-key.base64"));
        for signature in [
            include_str!("testdata/pss-salt-max.base64"),
            include_str!("testdata/pss-salt-32.base64"),
            include_str!("testdata/pss-salt-0.base64"),
        ] {
            let signature = decode(signature);
            assert!(verifies(&key, b"uid-1", &signature));
            assert!(!verifies(&key, b"uid-2", &signature));
            assert!(!verifies(&key, b"uid-1", &signature[1..]));
        }
    }
}
