//! Reads again objects that could not be decrypted: an unavailable KMS plugin may be available again, or a missing
//! key may be configured. Neither writes to the store, so no storage event reports it.

use crate::snapshot::UnreadableMap;
use pintle_storage::{BoxFuture, Key, ReadError, Revision, Storage, ValueState};
use std::{sync::Arc, time::Duration};

/// The delay before the first retry; it doubles with each retry up to `LONGEST`.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);
/// The number of objects read in one retry; the next retry continues after them.
const AT_ONCE: usize = 8;

/// The retries for one state of a resource.
pub(crate) struct SecondLook {
    looking: Option<BoxFuture<'static, bool>>,
    wait: Duration,
    looked_at: usize,
}

impl Default for SecondLook {
    fn default() -> SecondLook {
        SecondLook { looking: None, wait: FIRST, looked_at: 0 }
    }
}

impl SecondLook {
    /// Returns when one of the unreadable objects can be read in its stored form; never returns while no value failed
    /// to be transformed. Cancel safe: the next call continues a dropped one.
    pub(crate) async fn is_readable(&mut self, storage: &Arc<dyn Storage>, unreadable: &UnreadableMap) {
        loop {
            let looking = match &mut self.looking {
                Some(looking) => looking,
                none => {
                    let keys: Vec<_> = untransformed(unreadable).collect();
                    if keys.is_empty() {
                        return std::future::pending().await;
                    }
                    let start = self.looked_at % keys.len();
                    self.looked_at = start + AT_ONCE;
                    let some = keys.iter().cycle().skip(start).take(AT_ONCE.min(keys.len()));
                    none.insert(look(storage.clone(), some.cloned().collect(), self.wait))
                }
            };
            let found = looking.await;
            self.looking = None;
            self.wait = (self.wait * 2).min(LONGEST);
            if found {
                return;
            }
        }
    }
}

/// Only values whose transformation failed are retried: a value that does not decode stays so until it is written.
fn untransformed(unreadable: &UnreadableMap) -> impl Iterator<Item = (Key, Revision)> {
    let worth = unreadable.iter().filter(|(_, object)| matches!(object.error, ReadError::Transform(_)));
    worth.map(|(key, object)| (key.clone(), object.revision))
}

fn look(storage: Arc<dyn Storage>, keys: Vec<(Key, Revision)>, wait: Duration) -> BoxFuture<'static, bool> {
    Box::pin(async move {
        tokio::time::sleep(wait).await;
        for (key, revision) in keys {
            // The reflector's watch handles failures of the store.
            let Ok(response) = storage.get(&key).await else { return false };
            let Some(kv) = response.kv.filter(|kv| kv.mod_revision == revision) else { continue };
            if !matches!(kv.state, ValueState::Unreadable(_)) {
                return true;
            }
        }
        false
    })
}
