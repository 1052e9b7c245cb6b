//! `secretbox`: NaCl's XSalsa20 and Poly1305 (<https://nacl.cr.yp.to/secretbox.html>). The stored form is the 24-byte
//! nonce, then the 16-byte tag, then the ciphertext. The storage key is not authenticated.

use crate::{
    cipher::{Cipher, random, too_short},
    failure::Failure,
};
use crypto_secretbox::{AeadInPlace, KeyInit, Nonce, Tag, XSalsa20Poly1305};

const NONCE: usize = 24;
const TAG: usize = 16;

/// The cipher for a key of 32 bytes.
pub(crate) fn secretbox(key: &[u8]) -> Result<Box<dyn Cipher>, Failure> {
    match XSalsa20Poly1305::new_from_slice(key) {
        Ok(cipher) => Ok(Box::new(Secretbox(cipher))),
        Err(_) => {
            let text = format!("expected key size 32 for secretbox provider, got {}", key.len());
            Err(Failure::new(text))
        }
    }
}

struct Secretbox(XSalsa20Poly1305);

impl Cipher for Secretbox {
    fn seal(&self, _: &[u8], plain: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let nonce = random::<NONCE>()?;
        out.reserve(NONCE + TAG + plain.len());
        out.extend_from_slice(&nonce);
        let tag_at = out.len();
        out.extend_from_slice(&[0; TAG]);
        out.extend_from_slice(plain);
        let sealed = out.get_mut(tag_at..).and_then(|sealed| sealed.split_first_chunk_mut::<TAG>());
        let failed = || Failure::new("the value cannot be encrypted by secretbox");
        let (tag, text) = sealed.ok_or_else(failed)?;
        let made = self.0.encrypt_in_place_detached(Nonce::from_slice(&nonce), b"", text);
        tag.copy_from_slice(&made.map_err(|_| failed())?);
        Ok(())
    }

    fn open(&self, _: &[u8], stored: &[u8]) -> Result<Vec<u8>, Failure> {
        let (nonce, sealed) = stored.split_at_checked(NONCE).ok_or_else(too_short)?;
        let (tag, text) = sealed.split_at_checked(TAG).ok_or_else(too_short)?;
        let mut plain = text.to_vec();
        let (nonce, tag) = (Nonce::from_slice(nonce), Tag::from_slice(tag));
        match self.0.decrypt_in_place_detached(nonce, b"", &mut plain, tag) {
            Ok(()) => Ok(plain),
            // The reference's error text for an invalid tag.
            Err(_) => Err(Failure::new("output array was not large enough for encryption")),
        }
    }
}
