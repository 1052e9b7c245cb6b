//! Looks again at objects that could not be transformed back: a key service that was away comes back, and a key that was
//! missing is put into the configuration. Nothing is written then, so that no event of the store tells of it.

use crate::snapshot::UnreadableMap;
use pintle_storage::{BoxFuture, Key, ReadError, Revision, Storage, ValueState};
use std::{sync::Arc, time::Duration};

/// How long it waits before the first look and, doubled from look to look, at most.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);
/// So many objects are looked at at once; the next look goes on behind them.
const AT_ONCE: usize = 8;

/// The looks at one state of a resource.
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
    /// Returns when one of the objects can be read as it is stored; never while there is none of that kind. Cancel safe: a
    /// dropped call is gone on with by the next.
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

/// What does not decode stays so until it is written: only what was not transformed is worth a look.
fn untransformed(unreadable: &UnreadableMap) -> impl Iterator<Item = (Key, Revision)> {
    let worth = unreadable.iter().filter(|(_, object)| matches!(object.error, ReadError::Transform(_)));
    worth.map(|(key, object)| (key.clone(), object.revision))
}

fn look(storage: Arc<dyn Storage>, keys: Vec<(Key, Revision)>, wait: Duration) -> BoxFuture<'static, bool> {
    Box::pin(async move {
        tokio::time::sleep(wait).await;
        for (key, revision) in keys {
            // A store that fails is the watch's affair.
            let Ok(response) = storage.get(&key).await else { return false };
            let Some(kv) = response.kv.filter(|kv| kv.mod_revision == revision) else { continue };
            if !matches!(kv.state, ValueState::Unreadable(_)) {
                return true;
            }
        }
        false
    })
}
