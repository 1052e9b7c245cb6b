//! Caches the impersonation mode that each user was last allowed.

use super::modes::Mode;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasher, RandomState},
};

/// An LRU cache of modes by user. It stores hashes of user names only: a collision merely changes the mode that is
/// tried first.
#[derive(Default)]
pub(super) struct ModeCache {
    hasher: RandomState,
    users: Mutex<Users>,
}

#[derive(Default)]
struct Users {
    modes: HashMap<u64, (Mode, u64)>,
    /// Users by the time of their last use.
    uses: BTreeMap<u64, u64>,
    clock: u64,
}

/// The number of users in the cache.
const CAPACITY: usize = 10_000;

impl ModeCache {
    pub(super) fn get(&self, name: &str) -> Option<Mode> {
        let user = self.hasher.hash_one(name);
        let mut users = self.users.lock();
        let (mode, _) = *users.modes.get(&user)?;
        users.touch(user, mode);
        Some(mode)
    }

    pub(super) fn set(&self, name: &str, mode: Mode) {
        let user = self.hasher.hash_one(name);
        let mut users = self.users.lock();
        users.touch(user, mode);
        if users.modes.len() > CAPACITY
            && let Some((_, oldest)) = users.uses.pop_first()
        {
            users.modes.remove(&oldest);
        }
    }
}

impl Users {
    fn touch(&mut self, user: u64, mode: Mode) {
        self.clock += 1;
        if let Some((_, used)) = self.modes.insert(user, (mode, self.clock)) {
            self.uses.remove(&used);
        }
        self.uses.insert(self.clock, user);
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
        let users = cache.users.lock();
        assert_eq!((users.modes.len(), users.uses.len()), (CAPACITY, CAPACITY));
    }
}
