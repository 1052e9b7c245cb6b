//! The watch cache of one resource, which the registry reads and watches.

use crate::{
    CacherConfig, CacherError, CacherMetrics, Freshness, Requirement, WatchOptions, WatchStart, Watcher,
    bucket::Bucket,
    event_log::Position,
    reflector,
    shared::{Phase, Shared, State},
    ticker,
    watch_target::{WatchFilter, WatchTarget},
};
use pintle_storage::{Revision, Storage};
use pintle_supervisor::Supervisor;
use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
};
use tokio::{task::AbortHandle, time::Instant};

/// The watch cache of one resource over a store. See the crate's documentation for the design.
///
/// Dropping it ends its tasks and its watchers, as [`Cacher::stop`] does.
pub struct Cacher {
    pub(crate) shared: Arc<Shared>,
    tasks: [AbortHandle; 2],
}

impl Cacher {
    /// Starts the tasks that list and watch the store. Returns at once; see [`Cacher::wait_ready`].
    pub fn start(storage: Arc<dyn Storage>, config: CacherConfig, supervisor: &Supervisor) -> Arc<Cacher> {
        let shared = Arc::new(Shared::new(storage, config, Instant::now()));
        let part: Arc<str> = format!("watch-cache/{}", shared.config.resource).into();
        let (reflected, ticked) = (shared.clone(), shared.clone());
        let reflector = supervisor.spawn_restarting(part.clone(), move || reflector::run(reflected.clone()));
        let ticker = supervisor.spawn_restarting(part, move || ticker::run(ticked.clone()));
        let tasks = [reflector.abort_handle(), ticker.abort_handle()];
        Arc::new(Cacher { shared, tasks })
    }

    /// The configuration it was started with.
    pub fn config(&self) -> &CacherConfig {
        &self.shared.config
    }

    /// The cacher's counters.
    pub fn metrics(&self) -> &Arc<CacherMetrics> {
        &self.shared.metrics
    }

    /// Whether the first list has succeeded and the cacher was not stopped.
    pub fn is_ready(&self) -> bool {
        self.shared.progress.borrow().phase == Phase::Ready
    }

    /// Waits, as long as it takes, until the cacher is ready.
    ///
    /// # Errors
    /// [`CacherError::Stopped`] when the cacher is stopped before the first list has succeeded.
    pub async fn wait_ready(&self) -> Result<(), CacherError> {
        let mut progress = self.shared.progress.subscribe();
        match progress.wait_for(|progress| progress.phase != Phase::Pending).await {
            Ok(progress) if progress.phase == Phase::Ready => Ok(()),
            _ => Err(CacherError::Stopped),
        }
    }

    /// Ends the tasks and every watch. Each watch still delivers the changes published so far. Reads fail from now on
    /// with [`CacherError::Stopped`].
    pub fn stop(&self) {
        for task in &self.tasks {
            task.abort();
        }
        self.shared.stop();
    }

    /// The index in [`crate::CachedObject::fields`] of a selectable field that watchers are indexed by; `None` for
    /// any other field.
    pub fn trigger_index(&self, field: &str) -> Option<usize> {
        let triggers = &self.shared.config.triggers;
        triggers.iter().find(|trigger| &*trigger.name == field).map(|trigger| trigger.index)
    }

    /// Ends every watch, and every watch started later, after the changes published so far. Reads continue.
    pub fn end_watches(&self) {
        self.shared.end_watches();
    }

    /// Starts a watch.
    ///
    /// # Errors
    /// [`CacherError::Expired`] for a start that is too old; [`CacherError::TooLargeResourceVersion`] when initial
    /// events were requested from a revision that was not reached in time. Kubernetes sends either as an ERROR event
    /// on a stream that has begun with status 200. Also [`CacherError::NotReady`], [`CacherError::Stopped`] and
    /// [`CacherError::Storage`].
    pub async fn watch(&self, options: WatchOptions) -> Result<Watcher, CacherError> {
        let shared = &self.shared;
        // With the watch cache off, a watch starts from the store's latest state.
        let any = if self.is_read_cached() { Freshness::Any } else { Freshness::Consistent };
        match options.start {
            WatchStart::After(revision) => self.watch_after(revision, options).await,
            WatchStart::Now(Freshness::NotOlderThan(revision)) => self.watch_after(revision, options).await,
            WatchStart::Now(Freshness::Consistent) => {
                let revision = shared.storage.current_revision().await.map_err(CacherError::Storage)?;
                self.watch_after(revision, options).await
            }
            WatchStart::Now(Freshness::Any) => loop {
                shared.snapshot_from_cache(any).await?;
                let now = |state: &State| Some((state.log.end(), state.snapshot.revision()));
                if let Some(watcher) = self.register(options.clone(), now) {
                    return Ok(watcher);
                }
            },
            WatchStart::State => self.watch_with_state(any, false, options).await,
            WatchStart::InitialEvents(freshness) => {
                let bookmark = options.bookmarks;
                let freshness = if freshness == Freshness::Any { any } else { freshness };
                self.watch_with_state(freshness, bookmark, options).await
            }
        }
    }

    async fn watch_after(&self, revision: Revision, options: WatchOptions) -> Result<Watcher, CacherError> {
        let oldest = self.shared.storage.compacted_revision();
        if !self.is_read_cached() && revision < oldest {
            return Err(CacherError::Expired { requested: revision, oldest });
        }
        let after = |state: &State| Some((state.log.position_after(revision)?, revision));
        loop {
            self.shared.snapshot_from_cache(Freshness::Any).await?;
            if let Some(watcher) = self.register(options.clone(), after) {
                return Ok(watcher);
            }
            // A busy log may drop the history that was just prepended before the next `register`; then it is extended
            // again.
            self.shared.extend_log(revision).await?;
        }
    }

    async fn watch_with_state(
        &self,
        freshness: Freshness,
        bookmark: bool,
        options: WatchOptions,
    ) -> Result<Watcher, CacherError> {
        loop {
            let fresh = self.shared.snapshot_from_cache(freshness).await?;
            let mut initial = None;
            let watcher = self.register(options.clone(), |state| {
                // The snapshot may be older than `fresh`, whose revision also counts progress without writes to the
                // resource.
                let snapshot = state.snapshot.clone().at_least(fresh.revision());
                let revision = snapshot.revision();
                initial = Some(snapshot);
                Some((state.log.end(), revision))
            });
            if let (Some(watcher), Some(snapshot)) = (watcher, initial) {
                return Ok(watcher.with_initial_events(snapshot, bookmark));
            }
        }
    }

    /// Registers a watcher at the position that `start` returns. Both happen under the state's lock, so that the
    /// watcher misses no change and sees none twice. `None` when `start` returns `None`, and when the cacher has no
    /// state: it is stopped, or was emptied after the caller saw one.
    fn register(
        &self,
        options: WatchOptions,
        start: impl FnOnce(&State) -> Option<(Position, Revision)>,
    ) -> Option<Watcher> {
        let WatchOptions { start: _, scope, predicate, has_slow_predicate, trigger, bookmarks, deadline } =
            options;
        let config = &self.shared.config;
        let requirement = trigger.and_then(|trigger| Requirement::new(trigger, &config.triggers));
        let bucket = Bucket::new(&scope, requirement.as_ref());
        let filter = WatchFilter { scope, requirement, predicate, is_slow: has_slow_predicate };
        let now = Instant::now();
        let (target, first_bookmark) = {
            let mut state = self.shared.state.lock();
            self.shared.load()?;
            let (from, after) = start(&state)?;
            let target = Arc::new(WatchTarget::new(
                filter,
                bucket,
                after,
                from,
                deadline,
                config.queue_capacity,
                config.queue_budget.clone(),
            ));
            let first_bookmark = match &state.last_changes {
                Some(changes) => {
                    // The target is new: no waker is registered yet.
                    drop(target.finish(changes));
                    false
                }
                None => {
                    state.watchers.insert(target.clone());
                    bookmarks && state.bookmarks.insert(&target, now)
                }
            };
            (target, first_bookmark)
        };
        self.shared.metrics.watchers.fetch_add(1, Ordering::Relaxed);
        if first_bookmark {
            self.shared.due_changed.notify_one();
        }
        Some(Watcher::new(self.shared.clone(), target))
    }
}

impl Drop for Cacher {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Cacher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cacher").field("resource", &self.shared.config.resource).finish_non_exhaustive()
    }
}
