//! Reads history from the store for watches that begin before the event log.
//!
//! After a restart the log begins with the first list, while clients resume from earlier revisions. As long as the
//! store has not compacted those revisions, clients need not list again: the cacher reads the changes since then from
//! the store once and prepends them to the log, for all watchers.

use crate::{
    CacherConfig, CacherError, event::Change, object_map::ObjectMap, reflector::change, shared::Shared,
    too_much_history::TooMuchHistory,
};
use pintle_storage::{
    EventKind, Key, KeyValue, ListRequest, Revision, StorageError, StorageEvent, WatchRequest,
};
use std::{collections::HashSet, time::Duration};
use tokio::time::{Instant, timeout};

/// The number of past values up to which each is read by its key; more are read by one scan.
const POINT_READS: usize = 256;
/// The longest time that reading the history from the store may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// One write from the store's history.
struct Write {
    kind: EventKind,
    revision: Revision,
    kv: KeyValue,
}

impl Shared {
    /// Extends the log back to `after`, as far as the store's history allows.
    ///
    /// # Errors
    /// [`CacherError::Expired`] when the store has compacted `after`, or when the changes since then exceed the log's
    /// bounds; [`CacherError::Stopped`] when the cacher is stopped.
    pub(crate) async fn extend_log(&self, after: Revision) -> Result<(), CacherError> {
        // One at a time: a waiting caller mostly finds the log extended already.
        let mut too_much = self.extending.lock().await;
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
            if too_much.is_some_and(|too_much| too_much.is_part_of(after, start)) {
                return Err(too_old);
            }
            let expired = |error| match error {
                StorageError::Compacted { .. } => too_old.clone(),
                error => CacherError::Storage(error),
            };
            let changes = match timeout(PATIENCE, self.changes_between(after, start)).await {
                Ok(changes) => {
                    let changes = changes.map_err(expired)?;
                    if changes.is_none() {
                        *too_much = Some(TooMuchHistory { after, until: start });
                    }
                    changes
                }
                // The store did not answer in time; the result is the same as for more writes than the log may hold.
                Err(_) => None,
            };
            let Some(changes) = changes else {
                return Err(too_old);
            };
            let mut state = self.state.lock();
            // Meanwhile the log may have dropped its oldest changes, or have been reset; the loop then reads the gap,
            // too.
            if state.log.start() == start {
                if !state.log.prepend(changes, after, Instant::now()) {
                    return Err(too_old);
                }
                self.due_changed.notify_one();
                return Ok(());
            }
        }
    }

    /// The changes after `after` up to `until`, a revision that has been reached; `None` when they are too many or too
    /// large.
    async fn changes_between(
        &self,
        after: Revision,
        until: Revision,
    ) -> Result<Option<Vec<Change>>, StorageError> {
        match self.writes_between(after, until).await? {
            Some(writes) => self.changes(writes, after).await.map(Some),
            None => Ok(None),
        }
    }

    /// The writes after `after` up to `until`, a revision that has been reached. `None` when they are too many or too
    /// large: at most as much as the log may hold, and one batch from the store, is in memory.
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

    /// Pairs writes with the objects they replaced. The store does not report a replaced value, so it is read as of
    /// `after` for each key whose first write is an update.
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
                    // An unreadable value causes no event; the next change of the key has the last readable object as
                    // its previous one.
                    let Ok(object) = self.decode(&kv) else { continue };
                    let previous = objects.insert(object.clone());
                    (Some(object), previous)
                }
                // The deletion's event carries the deleted value.
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
            let _turn = self.large_reads.acquire().await;
            return Ok(self.list_from_storage(Some(at)).await?.objects().clone());
        }
        let mut objects = ObjectMap::default();
        for key in wanted {
            // The exact key sorts first among the keys that it is a prefix of.
            let request =
                ListRequest { prefix: key.to_string(), start_after: None, limit: 1, revision: Some(at) };
            let found = self.storage.get_list(request).await?.items.into_iter().next();
            if let Some(kv) = found.filter(|kv| kv.key == key)
                && let Ok(object) = self.decode(&kv)
            {
                objects.insert(object);
            }
        }
        Ok(objects)
    }
}
