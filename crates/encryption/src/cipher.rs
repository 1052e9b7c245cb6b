//! What the ciphers have in common, and where their random bytes come from.

use crate::failure::Failure;
use rand::{TryRngCore, rngs::OsRng};

/// One key of one algorithm.
///
/// `authenticated` is what the value is bound to (its storage key), for the algorithms that bind it to anything.
pub(crate) trait Cipher: Send + Sync + 'static {
    /// Appends what is to be stored for `plain` to `out`.
    fn seal(&self, authenticated: &[u8], plain: &[u8], out: &mut Vec<u8>) -> Result<(), Failure>;

    /// The value of which `stored` was made.
    fn open(&self, authenticated: &[u8], stored: &[u8]) -> Result<Vec<u8>, Failure>;
}

/// Too few bytes to hold what every value of the algorithm begins with.
pub(crate) fn too_short() -> Failure {
    Failure::new("the stored data was shorter than the required size")
}

/// The authentication tag does not fit: another key, another place, or damaged bytes.
pub(crate) fn not_authentic() -> Failure {
    Failure::new("cipher: message authentication failed")
}

/// A key of a length that AES does not have.
pub(crate) fn invalid_aes_key_size(length: usize) -> Failure {
    Failure::new(format!("crypto/aes: invalid key size {length}"))
}

/// Random bytes of the operating system's. A generator of the process's own would repeat itself in two copies of a
/// virtual machine, and a repeated nonce gives AES-GCM's key away.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    match OsRng.try_fill_bytes(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(Failure::new("unable to read sufficient random bytes")),
    }
}
