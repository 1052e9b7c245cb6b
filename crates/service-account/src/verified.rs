//! Caches tokens with a valid signature.
//!
//! Verifying a signature costs more than all other checks, and its result does not change while the keys stay the same.
//! So it is cached by the token's digest, in a bounded map of two generations: used entries
//! move into the young one, and when that is full the old one is dropped. Whether a token is valid *now* is never
//! cached.
//!
//! Large tokens are not cached: users choose the audiences of their tokens, and those of one could take hundreds of kilobytes.

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

/// The largest token that is cached, in bytes. Usual ones have about a thousand.
const MAX_BYTES: usize = 4096;
/// The most audiences of a token that is cached.
const MAX_AUDIENCES: usize = 32;

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

impl Verified {
    /// Whether the token, whose text this is, is small enough to be cached.
    fn is_small(&self, token: &str) -> bool {
        token.len() <= MAX_BYTES && self.claims.aud.len() <= MAX_AUDIENCES
    }
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

    /// Keeps a token that was verified with the keys of this generation, or of a later one, unless it is large.
    pub(crate) fn put(&self, token: &str, digest: Digest, verified: Arc<Verified>, keys: u64) {
        let is_small = verified.is_small(token);
        let mut generations = self.generations.lock();
        if generations.keys == keys && is_small {
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
        tokens.put("", used, verified("used"), 0);
        tokens.put("", digest_of("unused"), verified("unused"), 0);
        for round in 0..3 * GENERATION {
            tokens.put("", digest_of(&round.to_string()), verified("other"), 0);
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

    #[test]
    fn large_tokens_are_not_kept() {
        let check = |bytes: usize, audiences: usize, expected: bool| {
            let claims = Claims { aud: vec!["a".to_owned(); audiences], ..Claims::default() };
            let kind = Kind::Legacy(LegacyClaims::default());
            let verified = Arc::new(Verified { claims, kind, user: Arc::default() });
            let (tokens, token) = (VerifiedTokens::default(), "x".repeat(bytes));
            let digest = digest_of(&token);
            tokens.put(&token, digest, verified, 0);
            assert_eq!(tokens.get(&digest, 0).is_some(), expected, "{bytes} {audiences}");
        };
        check(1100, 1, true);
        check(4096, 32, true);
        check(4097, 1, false);
        check(2000, 33, false);
    }
}
