//! The interface of the ciphers, and their source of random bytes.

use crate::failure::Failure;
use rand::{TryRngCore, rngs::OsRng};

/// One key of one algorithm.
///
/// `authenticated` is the value's storage key; authenticating algorithms bind the value to it.
pub(crate) trait Cipher: Send + Sync + 'static {
    /// Appends the encrypted form of `plain` to `out`.
    fn seal(&self, authenticated: &[u8], plain: &[u8], out: &mut Vec<u8>) -> Result<(), Failure>;

    /// Decrypts `stored`.
    fn open(&self, authenticated: &[u8], stored: &[u8]) -> Result<Vec<u8>, Failure>;
}

/// The failure for fewer bytes than the algorithm's fixed parts.
pub(crate) fn too_short() -> Failure {
    Failure::new("the stored data was shorter than the required size")
}

/// The failure for an invalid authentication tag: another key, another storage key, or damaged bytes.
pub(crate) fn not_authentic() -> Failure {
    Failure::new("cipher: message authentication failed")
}

/// The failure for a key of a length that AES does not have.
pub(crate) fn invalid_aes_key_size(length: usize) -> Failure {
    Failure::new(format!("crypto/aes: invalid key size {length}"))
}

/// Random bytes from the operating system. A generator in the process would repeat its output in two copies of a
/// virtual machine, and a repeated nonce reveals AES-GCM's authentication key.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    match OsRng.try_fill_bytes(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(Failure::new("unable to read sufficient random bytes")),
    }
}
