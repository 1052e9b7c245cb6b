//! The keys of one local provider. The stored form is the key's name and a colon, then the stored form of its cipher.
//!
//! The first key encrypts; a value is decrypted by the keys with its name. Names may repeat, and each matching key is
//! tried.

use crate::{cipher::Cipher, failure::Failure, metrics::Scope};
use bytes::Bytes;
use std::time::Instant;

/// The keys of a provider, in the order of the configuration.
pub(crate) struct KeyRing {
    keys: Vec<NamedKey>,
    no_match: &'static str,
}

struct NamedKey {
    /// The name and a colon.
    prefix: String,
    cipher: Box<dyn Cipher>,
}

/// A decrypted value, and whether it would be stored differently now.
pub(crate) struct Opened {
    pub(crate) value: Bytes,
    pub(crate) stale: bool,
}

impl KeyRing {
    /// `no_match` is the failure for a value that names none of the keys.
    pub(crate) fn new(keys: Vec<(String, Box<dyn Cipher>)>, no_match: &'static str) -> KeyRing {
        let named = |(name, cipher)| NamedKey { prefix: format!("{name}:"), cipher };
        KeyRing { keys: keys.into_iter().map(named).collect(), no_match }
    }

    /// Encrypts the value with the first key, and appends it to `out`.
    pub(crate) fn seal(
        &self,
        scope: Scope<'_>,
        authenticated: &[u8],
        plain: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let Some(key) = self.keys.first() else { return Err(Failure::new(self.no_match)) };
        let start = Instant::now();
        out.extend_from_slice(key.prefix.as_bytes());
        let sealed = key.cipher.seal(authenticated, plain, out);
        scope.sealed(&key.prefix, start, sealed.as_ref().err());
        sealed
    }

    /// Decrypts the value with the keys that match its name.
    pub(crate) fn open(
        &self,
        scope: Scope<'_>,
        authenticated: &[u8],
        stored: &[u8],
    ) -> Result<Opened, Failure> {
        let start = Instant::now();
        let mut failures = Vec::new();
        for (position, key) in self.keys.iter().enumerate() {
            let Some(rest) = stored.strip_prefix(key.prefix.as_bytes()) else { continue };
            let opened = key.cipher.open(authenticated, rest);
            scope.opened(&key.prefix, start, opened.as_ref().err());
            match opened {
                Ok(value) => return Ok(Opened { value: value.into(), stale: position != 0 }),
                Err(failure) => failures.push(failure),
            }
        }
        if let Some(failure) = Failure::aggregate(failures) {
            return Err(failure);
        }
        let failure = Failure::new(self.no_match);
        scope.opened("unknown", start, Some(&failure));
        Err(failure)
    }
}
