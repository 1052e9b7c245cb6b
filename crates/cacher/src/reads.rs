//! Reads of the latest state at a requested freshness, and of past states.

use crate::{
    CachedObject, Cacher, CacherError, Freshness, Held, ReadSource, Requirement, Snapshot,
    shared::{Phase, Shared},
};
use pintle_storage::{Key, Revision, StorageError};
use std::{sync::Arc, sync::atomic::Ordering, time::Duration};
use tokio::time::{Instant, timeout};

/// The interval at which progress is requested again while a read waits: a request may be lost with a connection.
const ASK_AGAIN: Duration = Duration::from_millis(100);

impl Cacher {
    /// The latest state of the cache, without waiting; `None` until it is ready.
    pub fn current(&self) -> Option<Snapshot> {
        self.shared.load()
    }

    /// Holds what a reader has of a state, until it is dropped or memory is short. `most` is an upper bound of its bytes.
    pub fn hold<T: Send + 'static>(&self, snapshot: &Snapshot, most: usize, content: T) -> Held<T> {
        self.shared.hold(snapshot, most, content)
    }

    /// Holds what a reader has that is part of no state, until it is dropped or memory is short.
    pub fn hold_apart<T: Send + 'static>(&self, bytes: usize, content: T) -> Held<T> {
        self.shared.hold_apart(bytes, content)
    }

    /// Notes that a list of a state has a requirement. A label that lists of many objects ask for again and again gets an
    /// index for later states, if each of its values selects few of the objects.
    pub fn note_list(&self, snapshot: &Snapshot, requirement: &Requirement) {
        if let Requirement::Labels(labels) = requirement
            && snapshot.is_of_cache()
        {
            labels.iter().for_each(|label| self.shared.label_demand.ask(&label.name, snapshot.len()));
        }
    }

    /// Whether reads may be answered from the cache's present state. If not, they see the store's latest state
    /// regardless of the requested freshness, and a revision that the store has not reached is refused at once.
    pub fn is_read_cached(&self) -> bool {
        self.shared.config.read_source == ReadSource::Cache
    }

    /// The state of a resource, at least as fresh as requested.
    ///
    /// # Errors
    /// [`CacherError::TooLargeResourceVersion`] when the revision of [`Freshness::NotOlderThan`] was not reached in
    /// time; [`CacherError::NotReady`], [`CacherError::Stopped`] and [`CacherError::Storage`]. A consistent read that
    /// the cache cannot serve in time is read from the store.
    pub async fn snapshot(&self, freshness: Freshness) -> Result<Snapshot, CacherError> {
        self.list(&self.shared.config.prefix, freshness).await
    }

    /// The state of the keys with a prefix, at least as fresh as requested. The snapshot may contain other keys.
    ///
    /// # Errors
    /// As [`Cacher::snapshot`].
    pub async fn list(&self, prefix: &str, freshness: Freshness) -> Result<Snapshot, CacherError> {
        let shared = &self.shared;
        match shared.config.read_source {
            ReadSource::Cache => shared.snapshot(freshness, shared.newest_of_prefix(prefix)).await,
            ReadSource::NewestOfCache => {
                shared.refuse_future(freshness).await?;
                shared.snapshot(Freshness::Consistent, shared.newest_of_prefix(prefix)).await
            }
            ReadSource::Storage => {
                shared.refuse_stopped()?;
                let snapshot = shared.list_prefix_from_storage(prefix, None).await?;
                refuse_older(freshness, snapshot.revision())?;
                Ok(snapshot)
            }
        }
    }

    /// One object, with the revision of the state in which it was looked up.
    ///
    /// # Errors
    /// As [`Cacher::snapshot`].
    pub async fn get(
        &self,
        key: &Key,
        freshness: Freshness,
    ) -> Result<(Option<Arc<CachedObject>>, Revision), CacherError> {
        let snapshot = self.snapshot_of(key, freshness).await?;
        Ok((snapshot.get(key).cloned(), snapshot.revision()))
    }

    /// The state of one key, at least as fresh as requested. The snapshot may contain other keys.
    ///
    /// # Errors
    /// As [`Cacher::snapshot`].
    pub async fn snapshot_of(&self, key: &Key, freshness: Freshness) -> Result<Snapshot, CacherError> {
        let shared = &self.shared;
        match shared.config.read_source {
            ReadSource::Cache => shared.snapshot(freshness, shared.newest_of_key(key)).await,
            ReadSource::NewestOfCache => {
                shared.refuse_future(freshness).await?;
                shared.snapshot(Freshness::Consistent, shared.newest_of_key(key)).await
            }
            ReadSource::Storage => {
                shared.refuse_stopped()?;
                let snapshot = shared.newest_of_key(key).await?;
                refuse_older(freshness, snapshot.revision())?;
                Ok(snapshot)
            }
        }
    }

    /// Waits until the cache has every write up to a revision that the store has reached, whatever source reads have.
    ///
    /// # Errors
    /// [`CacherError::TooLargeResourceVersion`] when it was not reached in time; [`CacherError::NotReady`],
    /// [`CacherError::Stopped`] and [`CacherError::Storage`].
    pub async fn wait_for(&self, revision: Revision) -> Result<(), CacherError> {
        self.shared.snapshot_from_cache(Freshness::NotOlderThan(revision)).await.map(drop)
    }

    /// Waits until the cache has every write that was acknowledged before the call, whatever source reads have. Nothing is
    /// read from the store but its revision.
    ///
    /// # Errors
    /// As [`Cacher::wait_for`].
    pub async fn catch_up(&self) -> Result<(), CacherError> {
        self.shared.snapshot_from_cache(Freshness::Consistent).await.map(drop)
    }

    /// The state at exactly this revision (`resourceVersionMatch=Exact`, continue tokens): from the event log as far
    /// as it reaches, otherwise from the store's history.
    ///
    /// # Errors
    /// [`CacherError::Expired`], [`CacherError::TooLargeResourceVersion`], [`CacherError::NotReady`],
    /// [`CacherError::Stopped`] and [`CacherError::Storage`].
    pub async fn snapshot_at(&self, revision: Revision) -> Result<Snapshot, CacherError> {
        self.list_at(&self.shared.config.prefix, revision).await
    }

    /// As [`Cacher::snapshot_at`], for the keys with a prefix. The snapshot may contain other keys.
    ///
    /// # Errors
    /// As [`Cacher::snapshot_at`].
    pub async fn list_at(&self, prefix: &str, revision: Revision) -> Result<Snapshot, CacherError> {
        let shared = &self.shared;
        match shared.config.read_source {
            ReadSource::Cache => shared.snapshot_at(prefix, revision).await,
            ReadSource::NewestOfCache => {
                shared.refuse_future(Freshness::NotOlderThan(revision)).await?;
                shared.snapshot_at(prefix, revision).await
            }
            ReadSource::Storage => {
                shared.refuse_stopped()?;
                shared.past_from_storage(prefix, revision).await
            }
        }
    }
}

/// Refuses an answer of the store that is older than requested: the revision is in the future, and no read waits for
/// it.
pub(crate) fn refuse_older(freshness: Freshness, current: Revision) -> Result<(), StorageError> {
    match freshness {
        Freshness::NotOlderThan(requested) if requested > current => {
            Err(StorageError::FutureRevision { requested, current })
        }
        _ => Ok(()),
    }
}

impl Shared {
    /// The state of the cache, at least as fresh as requested. When a consistent read times out, `fallback` reads the
    /// requested keys from the store.
    async fn snapshot(
        &self,
        freshness: Freshness,
        fallback: impl Future<Output = Result<Snapshot, StorageError>>,
    ) -> Result<Snapshot, CacherError> {
        let answer = self.snapshot_from_cache(freshness).await;
        if freshness != Freshness::Consistent {
            return answer;
        }
        let (answer, counter) = match answer {
            Err(CacherError::TooLargeResourceVersion { requested, .. }) => {
                tracing::warn!(
                    resource = %self.config.resource, revision = %requested,
                    "the cache did not become fresh in time; reading from storage"
                );
                match fallback.await {
                    Ok(snapshot) => (Ok(snapshot), &self.metrics.consistent_reads_fallback),
                    Err(error) => (Err(error.into()), &self.metrics.consistent_reads_failed),
                }
            }
            answer => (answer, &self.metrics.consistent_reads),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        answer
    }

    /// The store's latest state of the keys with a prefix. Few such reads run at a time: each holds all objects in
    /// memory.
    async fn newest_of_prefix(&self, prefix: &str) -> Result<Snapshot, StorageError> {
        let _turn = self.large_reads.acquire().await;
        self.list_prefix_from_storage(prefix, None).await
    }

    /// The store's latest state of a key.
    async fn newest_of_key(&self, key: &Key) -> Result<Snapshot, StorageError> {
        let answer = self.storage.get(key).await?;
        let mut snapshot = Snapshot::default().at_least(answer.revision);
        if let Some(kv) = answer.kv {
            snapshot.put(kv.key.clone(), self.decode(&kv));
        }
        Ok(snapshot)
    }

    /// The state of the cache once it is as fresh as requested.
    pub(crate) async fn snapshot_from_cache(&self, freshness: Freshness) -> Result<Snapshot, CacherError> {
        let snapshot = self.ready_snapshot().await?;
        match freshness {
            Freshness::Any => Ok(snapshot),
            Freshness::NotOlderThan(revision) if snapshot.revision() >= revision => Ok(snapshot),
            Freshness::NotOlderThan(revision) => {
                let current = self.storage.current_revision().await?;
                self.wait_until_fresh(revision, current).await
            }
            Freshness::Consistent => {
                let current = self.storage.current_revision().await?;
                self.wait_until_fresh(current, current).await
            }
        }
    }

    /// The latest snapshot; waits for the first one.
    async fn ready_snapshot(&self) -> Result<Snapshot, CacherError> {
        if let Some(snapshot) = self.load() {
            return Ok(snapshot);
        }
        let mut progress = self.progress.subscribe();
        let ready = progress.wait_for(|progress| progress.phase != Phase::Pending);
        match timeout(self.config.freshness_timeout, ready).await {
            Ok(_) => self.load().ok_or(CacherError::Stopped),
            Err(_) => Err(CacherError::NotReady),
        }
    }

    /// Waits until the cache has everything up to `revision`. `current` is a revision that the store has reached.
    ///
    /// Some engines report the revision that the open watch has queued: once the cache has applied everything queued,
    /// it has seen all writes to the resource up to `current`, even if no event had that revision. That check costs
    /// two atomic loads. With other engines the cache waits for progress events.
    async fn wait_until_fresh(&self, revision: Revision, current: Revision) -> Result<Snapshot, CacherError> {
        let mut current = current;
        let mut waiting: Option<(Instant, tokio::sync::watch::Receiver<_>)> = None;
        let result = loop {
            // Loaded after `current` was known, so it covers every write up to `current`; and before the snapshot,
            // because a write in between would make the snapshot look too old.
            let queued = self.queued_revision();
            let Some(snapshot) = self.load() else {
                match self.ready_snapshot().await {
                    Ok(_) => continue,
                    Err(error) => break Err(error),
                }
            };
            let enough = match queued {
                Some(queued) if revision <= current => queued.min(revision),
                _ => revision,
            };
            if snapshot.revision() >= enough {
                break Ok(snapshot.at_least(revision));
            }
            let (since, progress) =
                waiting.get_or_insert_with(|| (Instant::now(), self.progress.subscribe()));
            let left = self.config.freshness_timeout.saturating_sub(since.elapsed());
            if left.is_zero() {
                break Err(CacherError::TooLargeResourceVersion {
                    requested: revision,
                    current: snapshot.revision(),
                });
            }
            if queued.is_none() {
                self.storage.request_progress().await?;
            }
            let reached =
                progress.wait_for(|progress| progress.revision >= enough || progress.phase == Phase::Stopped);
            if timeout(left.min(ASK_AGAIN), reached).await.is_err() && current < revision {
                current = self.storage.current_revision().await?;
            }
        };
        self.metrics.read_wait.observe(waiting.map_or(0.0, |(since, _)| since.elapsed().as_secs_f64()));
        result
    }

    async fn snapshot_at(&self, prefix: &str, revision: Revision) -> Result<Snapshot, CacherError> {
        match self.past_in_memory(revision).await? {
            Some(snapshot) => Ok(snapshot),
            None => self.past_from_storage(prefix, revision).await,
        }
    }

    /// The state at exactly this revision, if it is the present one, is retained, or can be rebuilt from the event log.
    pub(crate) async fn past_in_memory(&self, revision: Revision) -> Result<Option<Snapshot>, CacherError> {
        let newest = self.snapshot_from_cache(Freshness::NotOlderThan(revision)).await?;
        if newest.revision() == revision {
            return Ok(Some(newest));
        }
        // A compacted revision is refused, even if memory still has its state: all servers answer alike.
        if revision < self.storage.compacted_revision() {
            return Ok(None);
        }
        if let Some(retained) = self.retained.lock().get(revision) {
            return Ok(Some(retained));
        }
        let past = {
            let state = self.state.lock();
            state.log.past(revision, state.snapshot.objects())
        };
        Ok(past.map(|past| {
            // An object that is unreadable now and was written before `revision` was unreadable at `revision`.
            let unreadable = newest.unreadable_objects().iter();
            let unreadable = unreadable.filter(|(_, object)| object.revision <= revision);
            let unreadable = unreadable.map(|(key, object)| (key.clone(), object.clone())).collect();
            Snapshot::new(past.rebuild(), unreadable, revision)
        }))
    }

    async fn past_from_storage(&self, prefix: &str, revision: Revision) -> Result<Snapshot, CacherError> {
        let _turn = self.large_reads.acquire().await;
        match self.list_prefix_from_storage(prefix, Some(revision)).await {
            Ok(snapshot) => Ok(snapshot),
            Err(StorageError::Compacted { compacted }) => {
                Err(CacherError::Expired { requested: revision, oldest: compacted })
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn refuse_future(&self, freshness: Freshness) -> Result<(), CacherError> {
        if let Freshness::NotOlderThan(_) = freshness {
            refuse_older(freshness, self.storage.current_revision().await?)?;
        }
        Ok(())
    }

    pub(crate) fn refuse_stopped(&self) -> Result<(), CacherError> {
        match self.progress.borrow().phase {
            Phase::Stopped => Err(CacherError::Stopped),
            Phase::Pending | Phase::Ready => Ok(()),
        }
    }
}
