//! `aescbc`: AES-CBC with PKCS #7 padding. The stored form is the initialization vector, then the blocks.
//!
//! The mode has no authentication: a damaged value is detected only if its padding is wrong, and a value moved to
//! another storage key is not detected at all. It is supported because existing clusters have such values.

use crate::{
    cipher::{Cipher, invalid_aes_key_size, random, too_short},
    failure::Failure,
};
use aes::{Aes128, Aes192, Aes256};
use cbc::cipher::{
    BlockCipher, BlockDecryptMut, BlockEncryptMut, InnerIvInit, KeyInit, block_padding::NoPadding,
};

const BLOCK: usize = 16;

/// The cipher for a key of 16, 24 or 32 bytes.
pub(crate) fn aes_cbc(key: &[u8]) -> Result<Box<dyn Cipher>, Failure> {
    let invalid = |_| invalid_aes_key_size(key.len());
    Ok(match key.len() {
        16 => Box::new(AesCbc(Aes128::new_from_slice(key).map_err(invalid)?)),
        24 => Box::new(AesCbc(Aes192::new_from_slice(key).map_err(invalid)?)),
        32 => Box::new(AesCbc(Aes256::new_from_slice(key).map_err(invalid)?)),
        length => return Err(invalid_aes_key_size(length)),
    })
}

struct AesCbc<C>(C);

impl<C> Cipher for AesCbc<C>
where
    C: BlockCipher + BlockEncryptMut + BlockDecryptMut + Clone + Send + Sync + 'static,
    cbc::Encryptor<C>: InnerIvInit<Inner = C> + BlockEncryptMut,
    cbc::Decryptor<C>: InnerIvInit<Inner = C> + BlockDecryptMut,
{
    fn seal(&self, _: &[u8], plain: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let iv = random::<BLOCK>()?;
        let padding = BLOCK - plain.len() % BLOCK;
        out.reserve(BLOCK + plain.len() + padding);
        out.extend_from_slice(&iv);
        let start = out.len();
        out.extend_from_slice(plain);
        out.extend(std::iter::repeat_n(padding as u8, padding));
        let encryptor = cbc::Encryptor::inner_iv_slice_init(self.0.clone(), &iv);
        let encryptor = encryptor.map_err(|_| Failure::new("initialization vector of a wrong size"))?;
        let blocks = out.get_mut(start..).unwrap_or_default();
        let length = blocks.len();
        match encryptor.encrypt_padded_mut::<NoPadding>(blocks, length) {
            Ok(_) => Ok(()),
            Err(_) => Err(Failure::new("padding to whole blocks failed")),
        }
    }

    fn open(&self, _: &[u8], stored: &[u8]) -> Result<Vec<u8>, Failure> {
        let (iv, blocks) = stored.split_at_checked(BLOCK).ok_or_else(too_short)?;
        let not_blocks = || Failure::new("the stored data is not a multiple of the block size");
        if !blocks.len().is_multiple_of(BLOCK) {
            return Err(not_blocks());
        }
        let mut plain = blocks.to_vec();
        let decryptor = cbc::Decryptor::inner_iv_slice_init(self.0.clone(), iv).map_err(|_| too_short())?;
        if decryptor.decrypt_padded_mut::<NoPadding>(&mut plain).is_err() {
            return Err(not_blocks());
        }
        let length = unpadded_length(&plain)?;
        plain.truncate(length);
        Ok(plain)
    }
}

/// The length in bytes without the padding. Each padding byte has the padding's length as its value.
fn unpadded_length(plain: &[u8]) -> Result<usize, Failure> {
    let not_padded = || Failure::new("invalid PKCS7 data (empty or not padded)");
    let last = *plain.last().ok_or_else(not_padded)?;
    let padding = usize::from(last);
    if padding == 0 || padding > plain.len() {
        return Err(not_padded());
    }
    let length = plain.len() - padding;
    match plain.iter().skip(length).all(|byte| *byte == last) {
        true => Ok(length),
        false => Err(Failure::new("invalid padding on input")),
    }
}
