//! The cacher: what the registry talks to.

use crate::{CachedObject, CacherConfig, CacherError, CacherMetrics, Snapshot, WatchOptions, Watcher};
use pintle_storage::{Key, Revision, Storage};
use std::sync::Arc;
use tokio::runtime::Handle;

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

/// The watch cache of one resource over a store. See the crate's head for how it works.
///
/// Dropping it ends its tasks and its watchers, as [`Cacher::stop`] does.
pub struct Cacher {
    config: Arc<CacherConfig>,
    metrics: CacherMetrics,
}

impl Cacher {
    /// Starts to list and watch on the runtime. Returns at once; see [`Cacher::wait_ready`].
    pub fn start(storage: Arc<dyn Storage>, config: CacherConfig, runtime: &Handle) -> Arc<Cacher> {
        todo!()
    }

    /// What it was started with.
    pub fn config(&self) -> &CacherConfig {
        &self.config
    }

    /// Its counters.
    pub fn metrics(&self) -> &CacherMetrics {
        &self.metrics
    }

    /// Whether the first list has succeeded and the cacher was not stopped.
    pub fn is_ready(&self) -> bool {
        todo!()
    }

    /// Waits, as long as it takes, until the cacher is ready.
    ///
    /// # Errors
    /// [`CacherError::Stopped`].
    pub async fn wait_ready(&self) -> Result<(), CacherError> {
        todo!()
    }

    /// Ends the tasks and every watch. Reads fail from now on with [`CacherError::Stopped`].
    pub fn stop(&self) {
        todo!()
    }

    /// The state of a resource, as fresh as asked.
    ///
    /// # Errors
    /// [`CacherError::TooLargeResourceVersion`] when [`Freshness::NotOlderThan`] was not reached in time. A consistent
    /// read that the cache cannot serve in time is read from the store.
    pub async fn snapshot(&self, freshness: Freshness) -> Result<Snapshot, CacherError> {
        todo!()
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
        todo!()
    }

    /// The state at exactly this revision (`resourceVersionMatch=Exact`, continue tokens): from the cache as far as its
    /// history goes, else from the store's.
    ///
    /// # Errors
    /// [`CacherError::Expired`], [`CacherError::TooLargeResourceVersion`].
    pub async fn snapshot_at(&self, revision: Revision) -> Result<Snapshot, CacherError> {
        todo!()
    }

    /// Starts a watch.
    ///
    /// # Errors
    /// [`CacherError::Expired`] for a start that is too old; [`CacherError::TooLargeResourceVersion`] when initial
    /// events were asked from a revision that was not reached in time. Kubernetes sends either as an ERROR event on
    /// a stream that has begun with status 200.
    pub async fn watch(&self, options: WatchOptions) -> Result<Watcher, CacherError> {
        todo!()
    }
}
