//! Caches tokens with a valid signature.
//!
//! Verifying a signature costs more than all other checks, and its result does not change while the keys stay the same.
//! So it is cached by the token's digest, in a bounded map of two generations: used entries
//! move into the young one, and when that is full the old one is dropped. Whether a token is valid *now* is never
//! cached.

use crate::claims::{Claims, LegacyClaims};
use parking_lot::Mutex;
use pintle_machinery::UserInfo;
use ring::digest::{SHA256, digest};
use std::{
    collections::HashMap,
    mem,
    sync::{Arc, atomic::AtomicU64},
};

/// The number of tokens in a generation. A cluster of thousands of pods uses as many.
const GENERATION: usize = 8192;

/// A token that one of the keys signed.
pub(crate) struct Verified {
    pub(crate) claims: Claims,
    pub(crate) kind: Kind,
    /// The user of the token, if all other checks succeed.
    pub(crate) user: Arc<UserInfo>,
}

pub(crate) enum Kind {
    /// The revisions of the account and of the other bound object at which their checks last succeeded; 0 for none.
    Bound { account: AtomicU64, other: AtomicU64 },
    /// From a secret.
    Legacy(LegacyClaims),
}

pub(crate) type Digest = [u8; 32];

pub(crate) fn digest_of(token: &str) -> Digest {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}

#[derive(Default)]
pub(crate) struct VerifiedTokens {
    generations: Mutex<Generations>,
}

#[derive(Default)]
struct Generations {
    young: HashMap<Digest, Arc<Verified>>,
    old: HashMap<Digest, Arc<Verified>>,
    /// The generation of the keys that signed the tokens.
    keys: u64,
}

impl VerifiedTokens {
    /// A token that was verified with the keys of this generation.
    pub(crate) fn get(&self, digest: &Digest, keys: u64) -> Option<Arc<Verified>> {
        let mut generations = self.generations.lock();
        if generations.keys != keys {
            *generations = Generations { keys, ..Generations::default() };
        }
        if let Some(verified) = generations.young.get(digest) {
            return Some(verified.clone());
        }
        let verified = generations.old.remove(digest)?;
        generations.put(*digest, verified.clone());
        Some(verified)
    }

    /// Keeps a token that was verified with the keys of this generation, or of a later one.
    pub(crate) fn put(&self, digest: Digest, verified: Arc<Verified>, keys: u64) {
        let mut generations = self.generations.lock();
        if generations.keys == keys {
            generations.put(digest, verified);
        }
    }
}

impl Generations {
    fn put(&mut self, digest: Digest, verified: Arc<Verified>) {
        if self.young.len() >= GENERATION {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(digest, verified);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let tokens = VerifiedTokens::default();
        let verified = |name: &str| {
            let user = UserInfo { name: name.to_owned(), ..UserInfo::default() };
            let kind = Kind::Legacy(LegacyClaims::default());
            Arc::new(Verified { claims: Claims::default(), kind, user: Arc::new(user) })
        };
        let used = digest_of("used");
        tokens.put(used, verified("used"), 0);
        tokens.put(digest_of("unused"), verified("unused"), 0);
        for round in 0..3 * GENERATION {
            tokens.put(digest_of(&round.to_string()), verified("other"), 0);
            if round % 1000 == 0 {
                assert_eq!(tokens.get(&used, 0).unwrap().user.name, "used");
            }
        }
        assert!(tokens.get(&digest_of("unused"), 0).is_none());
        let generations = tokens.generations.lock();
        assert!(generations.young.len() + generations.old.len() <= 2 * GENERATION);
        drop(generations);
        assert!(tokens.get(&used, 1).is_none(), "the keys have changed");
    }
}
