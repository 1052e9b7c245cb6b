//! `aesgcm`: AES-GCM. The stored form is the 12-byte nonce, then the ciphertext, then the 16-byte tag; the storage
//! key is authenticated data.
//!
//! Nonces are random, so a key must be replaced before about 4 billion values were written with it.

use crate::{
    cipher::{Cipher, invalid_aes_key_size, not_authentic, random, too_short},
    failure::Failure,
};
use aes::{Aes128, Aes192, Aes256};
use aes_gcm::{
    AeadInPlace, AesGcm, KeyInit, Nonce, Tag,
    aead::consts::{U12, U16},
};

const NONCE: usize = 12;
const TAG: usize = 16;

/// The cipher for a key of 16, 24 or 32 bytes.
pub(crate) fn aes_gcm(key: &[u8]) -> Result<Box<dyn Cipher>, Failure> {
    let invalid = |_| invalid_aes_key_size(key.len());
    Ok(match key.len() {
        16 => Box::new(Gcm(AesGcm::<Aes128, U12>::new_from_slice(key).map_err(invalid)?)),
        24 => Box::new(Gcm(AesGcm::<Aes192, U12>::new_from_slice(key).map_err(invalid)?)),
        32 => Box::new(Gcm(AesGcm::<Aes256, U12>::new_from_slice(key).map_err(invalid)?)),
        length => return Err(invalid_aes_key_size(length)),
    })
}

/// The cipher for a key of 32 bytes, unboxed, for keys that are derived per value.
pub(crate) fn aes_256_gcm(key: &[u8; 32]) -> impl Cipher + use<> {
    Gcm(AesGcm::<Aes256, U12>::new(key.into()))
}

struct Gcm<A>(A);

impl<A> Cipher for Gcm<A>
where
    A: AeadInPlace<NonceSize = U12, TagSize = U16> + Send + Sync + 'static,
{
    fn seal(&self, authenticated: &[u8], plain: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let nonce = random::<NONCE>()?;
        out.reserve(NONCE + plain.len() + TAG);
        out.extend_from_slice(&nonce);
        let start = out.len();
        out.extend_from_slice(plain);
        let text = out.get_mut(start..).unwrap_or_default();
        let tag = self.0.encrypt_in_place_detached(Nonce::from_slice(&nonce), authenticated, text);
        // Only a value of more than 64 GiB cannot be encrypted.
        let tag = tag.map_err(|_| Failure::new("crypto/cipher: message too large for GCM"))?;
        out.extend_from_slice(&tag);
        Ok(())
    }

    fn open(&self, authenticated: &[u8], stored: &[u8]) -> Result<Vec<u8>, Failure> {
        let (nonce, rest) = stored.split_at_checked(NONCE).ok_or_else(too_short)?;
        let (text, tag) = rest.split_last_chunk::<TAG>().ok_or_else(not_authentic)?;
        let mut plain = text.to_vec();
        let (nonce, tag) = (Nonce::from_slice(nonce), Tag::from_slice(tag));
        match self.0.decrypt_in_place_detached(nonce, authenticated, &mut plain, tag) {
            Ok(()) => Ok(plain),
            Err(_) => Err(not_authentic()),
        }
    }
}
