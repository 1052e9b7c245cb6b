//! Reads: the newest state, as fresh as asked, and past states.

use crate::{
    CachedObject, Cacher, CacherError, Snapshot,
    shared::{Phase, Shared},
};
use pintle_storage::{Key, Revision, StorageError};
use std::{sync::Arc, sync::atomic::Ordering, time::Duration};
use tokio::time::{Instant, timeout};

/// How often the store is asked again while a read waits for it: a progress request may be lost with a connection.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// How fresh a read has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Whatever the cache has (`resourceVersion=0`).
    Any,
    /// Not older than a revision (`resourceVersion=N`, `resourceVersionMatch=NotOlderThan`).
    NotOlderThan(Revision),
    /// Not older than any write that was acknowledged before the read began (no `resourceVersion`).
    Consistent,
}

impl Cacher {
    /// The newest state the cache has, without waiting; `None` until it is ready.
    pub fn current(&self) -> Option<Snapshot> {
        self.shared.load()
    }

    /// The state of a resource, as fresh as asked.
    ///
    /// # Errors
    /// [`CacherError::TooLargeResourceVersion`] when [`Freshness::NotOlderThan`] was not reached in time. A consistent
    /// read that the cache cannot serve in time is read from the store.
    pub async fn snapshot(&self, freshness: Freshness) -> Result<Snapshot, CacherError> {
        self.shared.snapshot(freshness).await
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
        let snapshot = self.snapshot(freshness).await?;
        Ok((snapshot.get(key).cloned(), snapshot.revision()))
    }

    /// The state at exactly this revision (`resourceVersionMatch=Exact`, continue tokens): from the cache as far as its
    /// history goes, else from the store's.
    ///
    /// # Errors
    /// [`CacherError::Expired`], [`CacherError::TooLargeResourceVersion`].
    pub async fn snapshot_at(&self, revision: Revision) -> Result<Snapshot, CacherError> {
        self.shared.snapshot_at(revision).await
    }
}

impl Shared {
    /// As [`Cacher::snapshot`].
    async fn snapshot(&self, freshness: Freshness) -> Result<Snapshot, CacherError> {
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
                match self.list_from_storage(None).await {
                    Ok(snapshot) => (Ok(snapshot), &self.metrics.consistent_reads_fallback),
                    Err(error) => (Err(error.into()), &self.metrics.consistent_reads_failed),
                }
            }
            answer => (answer, &self.metrics.consistent_reads),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        answer
    }

    /// The state of the cache once it is as fresh as asked.
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

    /// The newest snapshot, waiting for the first one.
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
    /// Engines that tell how far they have queued are believed: when the cache has seen all that is queued, it has
    /// seen all writes to the resource up to `current`, though no event said so. That costs two atomic loads. With
    /// others the cache waits for progress.
    async fn wait_until_fresh(&self, revision: Revision, current: Revision) -> Result<Snapshot, CacherError> {
        let mut current = current;
        let mut waiting: Option<(Instant, tokio::sync::watch::Receiver<_>)> = None;
        let result = loop {
            // Loaded after `current` was known, so it covers every write up to `current`; and before the snapshot, or a
            // write between the two would make the snapshot look older than it has to be.
            let queued = self.queued_revision();
            let Some(snapshot) = self.load() else { break Err(CacherError::Stopped) };
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
        self.metrics.read_wait.observe(waiting.map_or(Duration::ZERO, |(since, _)| since.elapsed()));
        result
    }

    async fn snapshot_at(&self, revision: Revision) -> Result<Snapshot, CacherError> {
        let newest = self.snapshot(Freshness::NotOlderThan(revision)).await?;
        if newest.revision() == revision {
            return Ok(newest);
        }
        let past = {
            let state = self.state.lock();
            state.log.past(revision, state.snapshot.objects())
        };
        if let Some(past) = past {
            // What is unreadable now and was written before was unreadable then.
            let unreadable = newest.unreadable_objects().iter();
            let unreadable = unreadable.filter(|(_, object)| object.revision <= revision);
            let unreadable = unreadable.map(|(key, object)| (key.clone(), object.clone())).collect();
            return Ok(Snapshot::new(past.rebuild(), unreadable, revision));
        }
        match self.list_from_storage(Some(revision)).await {
            Ok(snapshot) => Ok(snapshot),
            Err(StorageError::Compacted { compacted }) => {
                Err(CacherError::Expired { requested: revision, oldest: compacted })
            }
            Err(error) => Err(error.into()),
        }
    }
}
