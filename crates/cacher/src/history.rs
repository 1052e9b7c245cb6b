//! History from the store for watches that begin before the event log.
//!
//! After a restart the log begins with the first list, while clients come back with revisions from before it. As long as
//! the store has not compacted those, they need not list again: what happened since is read from the store once and
//! put before the log, for all of them.

use crate::{
    CacherConfig, CacherError, event::Change, reflector::change, shared::Shared, snapshot::ObjectMap,
};
use pintle_storage::{
    EventKind, Key, KeyValue, ListRequest, Revision, StorageError, StorageEvent, WatchRequest,
};
use std::{collections::HashSet, time::Duration};
use tokio::time::{Instant, timeout};

/// Up to so many past values are read one by one, more by a scan.
const POINT_READS: usize = 256;
/// How long the store may take to tell what happened.
const PATIENCE: Duration = Duration::from_secs(10);

/// One write that the store remembers.
struct Write {
    kind: EventKind,
    revision: Revision,
    kv: KeyValue,
}

impl Shared {
    /// Makes the log reach back to `after`, if the store does.
    ///
    /// # Errors
    /// [`CacherError::Expired`] when it does not, or when more happened since than the log holds.
    pub(crate) async fn extend_log(&self, after: Revision) -> Result<(), CacherError> {
        // One at a time: those who wait will mostly find what they need.
        let _extending = self.extending.lock().await;
        loop {
            let start = {
                let state = self.state.lock();
                if state.stopped {
                    return Err(CacherError::Stopped);
                }
                state.log.start()
            };
            if start <= after {
                return Ok(());
            }
            let too_old = CacherError::Expired { requested: after, oldest: start };
            if !self.config.resume_from_storage {
                return Err(too_old);
            }
            let expired = |error| match error {
                StorageError::Compacted { .. } => too_old.clone(),
                error => CacherError::Storage(error),
            };
            let writes = match timeout(PATIENCE, self.writes_between(after, start)).await {
                Ok(writes) => writes.map_err(expired)?,
                // A store that is silent, or more writes than the log holds.
                Err(_) => None,
            };
            let Some(writes) = writes else {
                return Err(too_old);
            };
            let changes = self.changes(writes, after).await.map_err(expired)?;
            let mut state = self.state.lock();
            // Meanwhile the log may have lost its oldest changes, or begun anew; then there is a gap to be read, too.
            if state.log.start() == start {
                if !state.log.prepend(changes, after, Instant::now()) {
                    return Err(too_old);
                }
                self.due_changed.notify_one();
                return Ok(());
            }
        }
    }

    /// The writes after one revision up to another which has happened; `None` when they are too many or too large: no
    /// more of them is ever in memory than the log may hold, and one batch of the store's.
    async fn writes_between(
        &self,
        after: Revision,
        until: Revision,
    ) -> Result<Option<Vec<Write>>, StorageError> {
        let prefix = self.config.prefix.to_string();
        let mut stream = self.storage.watch(WatchRequest { prefix, after }).await?;
        self.storage.request_progress().await?;
        let mut writes = Vec::new();
        let mut bytes = 0;
        while let Some(batch) = stream.next_batch().await {
            for event in batch {
                match event {
                    StorageEvent::Write { kind, revision, kv } if revision <= until => {
                        bytes += kv.value.len();
                        writes.push(Write { kind, revision, kv });
                        let CacherConfig { log_capacity_max, log_bytes_max, .. } = self.config;
                        if writes.len() > log_capacity_max || bytes > log_bytes_max {
                            return Ok(None);
                        }
                    }
                    StorageEvent::Write { .. } => return Ok(Some(writes)),
                    StorageEvent::Progress(revision) if revision >= until => return Ok(Some(writes)),
                    StorageEvent::Progress(_) => {}
                    StorageEvent::Error(error) => return Err(error),
                }
            }
        }
        Err(StorageError::Closed)
    }

    /// Writes with what they replaced. The store does not tell the latter, so it is read as of `after` for each key whose
    /// first write is no creation.
    async fn changes(&self, writes: Vec<Write>, after: Revision) -> Result<Vec<Change>, StorageError> {
        let mut seen = HashSet::new();
        let mut wanted = HashSet::new();
        for write in &writes {
            if seen.insert(write.kv.key.clone()) && write.kind == EventKind::Update {
                wanted.insert(write.kv.key.clone());
            }
        }
        let mut objects = self.read_past(wanted, after).await?;
        let mut changes = Vec::with_capacity(writes.len());
        for Write { kind, revision, kv } in writes {
            let (current, previous) = match kind {
                EventKind::Create | EventKind::Update => {
                    // Nobody is told of a value that cannot be read; what was before it is what follows changes.
                    let Ok(object) = self.decode(&kv) else { continue };
                    let previous = objects.insert(kv.key, object.clone());
                    (Some(object), previous)
                }
                // The event itself carries what was deleted.
                EventKind::Delete => {
                    (None, objects.remove(kv.key.as_str()).or_else(|| self.decode(&kv).ok()))
                }
            };
            changes.extend(change(revision, current, previous));
        }
        Ok(changes)
    }

    async fn read_past(&self, wanted: HashSet<Key>, at: Revision) -> Result<ObjectMap, StorageError> {
        if wanted.len() > POINT_READS {
            return Ok(self.list_from_storage(Some(at)).await?.objects().clone());
        }
        let mut objects = ObjectMap::new();
        for key in wanted {
            // The key itself is the first of those it is a prefix of.
            let request =
                ListRequest { prefix: key.to_string(), start_after: None, limit: 1, revision: Some(at) };
            let found = self.storage.get_list(request).await?.items.into_iter().next();
            if let Some(kv) = found.filter(|kv| kv.key == key)
                && let Ok(object) = self.decode(&kv)
            {
                objects.insert(key, object);
            }
        }
        Ok(objects)
    }
}
