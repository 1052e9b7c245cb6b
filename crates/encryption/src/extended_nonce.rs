//! AES-256-GCM with a separate key for each value, derived from a seed. The stored form is the 32 random bytes of the
//! derivation, then the stored form of [`crate::aes_gcm`].
//!
//! Each key is used once, so a seed may be used for any number of values, and across restarts
//! (<https://github.com/kubernetes/enhancements/tree/master/keps/sig-auth/3299-kms-v2-improvements>). Derived keys
//! are not cached: a derivation costs less than a cache of all objects' keys would save.

use crate::{
    aes_gcm::aes_256_gcm,
    cipher::{Cipher, random, too_short},
    failure::Failure,
};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

/// The length of generated seeds, and the least length of any seed, in bytes.
pub(crate) const SEED: usize = 32;
const INFO: usize = 32;

/// The cipher of one seed.
pub(crate) struct ExtendedNonceGcm {
    seed: Zeroizing<Vec<u8>>,
}

impl ExtendedNonceGcm {
    pub(crate) fn new(seed: Zeroizing<Vec<u8>>) -> Result<ExtendedNonceGcm, Failure> {
        match seed.len() < SEED {
            true => Err(Failure::new(format!("invalid seed length {} used for key generation", seed.len()))),
            false => Ok(ExtendedNonceGcm { seed }),
        }
    }

    /// The cipher of one value. Its key is derived by HKDF-SHA256 without the extract step, since the seed is random
    /// already.
    fn derived(&self, info: &[u8; INFO]) -> Result<impl Cipher, Failure> {
        let failed = || Failure::new("failed to KDF expand seed with info");
        let mut key = Zeroizing::new([0; 32]);
        let kdf = Hkdf::<Sha256>::from_prk(&self.seed).map_err(|_| failed())?;
        kdf.expand(info, key.as_mut_slice()).map_err(|_| failed())?;
        Ok(aes_256_gcm(&key))
    }
}

impl Cipher for ExtendedNonceGcm {
    fn seal(&self, authenticated: &[u8], plain: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let info = random::<INFO>()?;
        out.extend_from_slice(&info);
        self.derived(&info)?.seal(authenticated, plain, out)
    }

    fn open(&self, authenticated: &[u8], stored: &[u8]) -> Result<Vec<u8>, Failure> {
        let (info, rest) = stored.split_first_chunk::<INFO>().ok_or_else(too_short)?;
        self.derived(info)?.open(authenticated, rest)
    }
}
