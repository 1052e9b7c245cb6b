//! Caches the impersonation mode that each user was last allowed.

use super::modes::Mode;
use hashlink::LruCache;
use parking_lot::Mutex;
use std::hash::{BuildHasher, RandomState};

/// The number of users in the cache.
const CAPACITY: usize = 10_000;

/// An LRU cache of modes by user. It stores hashes of user names only: a collision merely changes the mode that is
/// tried first.
pub(super) struct ModeCache {
    hasher: RandomState,
    users: Mutex<LruCache<u64, Mode>>,
}

impl Default for ModeCache {
    fn default() -> ModeCache {
        ModeCache { hasher: RandomState::new(), users: Mutex::new(LruCache::new(CAPACITY)) }
    }
}

impl ModeCache {
    pub(super) fn get(&self, name: &str) -> Option<Mode> {
        let user = self.hasher.hash_one(name);
        self.users.lock().get(&user).copied()
    }

    pub(super) fn set(&self, name: &str, mode: Mode) {
        let user = self.hasher.hash_one(name);
        self.users.lock().insert(user, mode);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_of_late_are_remembered() {
        let cache = ModeCache::default();
        cache.set("first", Mode::Legacy);
        cache.set("jane", Mode::UserInfo);
        for other in 0..CAPACITY - 1 {
            cache.set(&other.to_string(), Mode::Legacy);
            assert_eq!(cache.get("jane"), Some(Mode::UserInfo));
        }
        assert_eq!(cache.get("first"), None);
        assert_eq!(cache.users.lock().len(), CAPACITY);
    }
}
