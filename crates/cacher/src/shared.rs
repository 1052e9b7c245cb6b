//! The state that a cacher's tasks, readers and watchers share, and the one place that publishes changes.
//!
//! Lock order: [`Shared::state`], then one watcher's queue, [`Shared::retained`] or [`Shared::held`]. None is held across an await, and no
//! waker is woken under any. Readers take no lock but that of the retained states, which is held for a few steps at a
//! time: they load the snapshot, and wait (if they must) on the progress channel. Only the rest of a long list, of a state
//! that has been replaced meanwhile, is weighed under the lock of the state.
//!
//! Order of publication, under the state's lock: the snapshot, the event log, the queues; then, without the lock, the
//! waiting readers and each watcher with new items are woken once. So a reader that has seen an event finds the
//! event's state in the snapshot.

use crate::{
    CachedObject, CacherConfig, CacherMetrics, DecodedObject, Snapshot, UnreadableObject, WatchItem,
    bookmarks::BookmarkBuckets,
    byte_budget::BudgetedBytes,
    event::{Change, WatchEvent},
    event_log::{EventLog, Packable},
    held::{self, Held, HeldStates},
    label_demand::LabelDemand,
    last_changes::LastChanges,
    metrics,
    remaining_counts::RemainingCounts,
    retained::RetainedStates,
    too_much_history::TooMuchHistory,
    watch_target::WatchTarget,
    watcher_index::WatcherIndex,
};
use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use pintle_storage::{Key, KeyValue, ReadError, Revision, Storage, TransformError, ValueState};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Waker,
};
use tokio::{
    sync::{Notify, Semaphore, watch},
    time::Instant,
};

/// The number of requests that may read many objects from the store at the same time.
const LARGE_READS: usize = 2;

pub(crate) struct Shared {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) config: CacherConfig,
    pub(crate) metrics: Arc<CacherMetrics>,
    /// `None` until the first list, and again after a stop.
    snapshot: ArcSwapOption<Snapshot>,
    pub(crate) progress: watch::Sender<Progress>,
    /// The revision that the open storage watch has queued, see [`pintle_storage::WatchReceiver::queued_revision`].
    queued: ArcSwapOption<AtomicU64>,
    pub(crate) state: Mutex<State>,
    /// The states that continue tokens were issued for.
    pub(crate) retained: Mutex<RetainedStates>,
    /// The states that readers hold.
    pub(crate) held: Arc<Mutex<HeldStates>>,
    /// The content that readers hold that is part of no state.
    held_apart: Arc<Mutex<HeldStates>>,
    /// The numbers of objects after the pages that were sent.
    pub(crate) remaining: Mutex<RemainingCounts>,
    /// The labels that lists ask for.
    pub(crate) label_demand: LabelDemand,
    /// Notifies [`crate::ticker`] that work is due earlier than before.
    pub(crate) due_changed: Notify,
    /// Held while history is read from the store for the event log.
    pub(crate) extending: tokio::sync::Mutex<Option<TooMuchHistory>>,
    /// Limits the requests that read many objects from the store at the same time.
    pub(crate) large_reads: Semaphore,
}

/// The progress of the cacher, for waiting readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) revision: Revision,
    pub(crate) phase: Phase,
}

/// Pending until the first list, and again after a panic until the next one; then Ready until Stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Pending,
    Ready,
    Stopped,
}

/// The state that changes with every event. Its snapshot is the published one.
pub(crate) struct State {
    pub(crate) snapshot: Snapshot,
    pub(crate) log: EventLog,
    pub(crate) watchers: WatcherIndex,
    pub(crate) bookmarks: BookmarkBuckets,
    /// The changes after which all watches end, once they do.
    pub(crate) last_changes: Option<Arc<LastChanges>>,
    pub(crate) stopped: bool,
}

impl Shared {
    pub(crate) fn new(storage: Arc<dyn Storage>, config: CacherConfig, now: Instant) -> Shared {
        let log = EventLog::new(&config);
        let state = State {
            snapshot: Snapshot::default(),
            log,
            watchers: WatcherIndex::new(&config.triggers),
            bookmarks: BookmarkBuckets::new(now, config.bookmark_period),
            last_changes: None,
            stopped: false,
        };
        let retained =
            RetainedStates::new(config.retained_bytes_max, config.retention, config.log_budget.clone());
        let held = || Arc::new(Mutex::new(HeldStates::new(BudgetedBytes::new(config.held_budget.clone()))));
        let (held, held_apart) = (held(), held());
        Shared {
            storage,
            config,
            metrics: Arc::default(),
            snapshot: ArcSwapOption::empty(),
            progress: watch::Sender::new(Progress { revision: Revision(0), phase: Phase::Pending }),
            queued: ArcSwapOption::empty(),
            state: Mutex::new(state),
            retained: Mutex::new(retained),
            held,
            held_apart,
            remaining: Mutex::default(),
            label_demand: LabelDemand::default(),
            due_changed: Notify::new(),
            extending: tokio::sync::Mutex::default(),
            large_reads: Semaphore::new(LARGE_READS),
        }
    }

    /// The latest snapshot, if there is one.
    pub(crate) fn load(&self) -> Option<Snapshot> {
        self.snapshot.load().as_deref().cloned()
    }

    /// The revision that the open storage watch has queued, if the engine reports it and the watch is intact.
    pub(crate) fn queued_revision(&self) -> Option<Revision> {
        let queued = self.queued.load().as_ref()?.load(Ordering::Acquire);
        (queued != u64::MAX).then_some(Revision(queued))
    }

    pub(crate) fn set_queued(&self, queued: Option<Arc<AtomicU64>>) {
        self.queued.store(queued);
    }

    /// Replaces all state by the result of a list. Watchers would miss the changes between the last event and the
    /// list, so all watches end.
    pub(crate) fn replace(&self, snapshot: Snapshot) {
        let mut wakers = Vec::new();
        let _dropped;
        {
            let mut state = self.state.lock();
            if state.stopped {
                return;
            }
            _dropped = (self.retained.lock().reset(&snapshot), self.held.lock().reset());
            *self.remaining.lock() = RemainingCounts::default();
            state.log.reset(snapshot.revision());
            self.metrics.set_capacity(state.log.capacity());
            wakers.extend(state.watchers.drain().filter_map(|target| target.end()));
            // A restored store may be at an earlier revision: without the reset, waiting readers would treat later
            // revisions as reached.
            self.progress.send_if_modified(|progress| {
                let is_before = snapshot.revision() < progress.revision;
                progress.revision = progress.revision.min(snapshot.revision());
                is_before
            });
            self.publish(&mut state, snapshot);
        }
        self.metrics.initializations.fetch_add(1, Ordering::Relaxed);
        self.wake(wakers);
    }

    /// Publishes changes, in order, with the state after them.
    pub(crate) fn apply(&self, changes: Vec<Change>, snapshot: Snapshot) {
        let now = Instant::now();
        let count = changes.len();
        let mut wakers = Vec::new();
        let _dropped;
        let packable;
        {
            let mut state = self.state.lock();
            if state.stopped {
                return;
            }
            // Before the publication: a reader of the new state finds it noted as the present one.
            _dropped =
                (self.retained.lock().note(&changes, &snapshot), self.held.lock().note(&changes, &snapshot));
            self.publish(&mut state, snapshot);
            let State { snapshot, log, watchers, .. } = &mut *state;
            let trimmable = log.is_trimmable();
            for change in changes {
                let at = log.end();
                let mut event = None;
                watchers.for_each_candidate(&change, |target| {
                    wakers.extend(target.offer(&change, at, &mut event, || self.event(change.clone())));
                });
                log.push(change, now);
            }
            log.note_state(snapshot.objects());
            // More than come, so that a log with many unpacked objects catches up.
            packable = log.take_packable(2 * count);
            self.metrics.set_capacity(log.capacity());
            if log.is_trimmable() && !trimmable {
                self.due_changed.notify_one();
            }
        }
        metrics::add(&self.metrics.events_dispatched, count);
        self.wake(wakers);
        if !packable.is_empty() {
            packable.iter().for_each(Packable::pack);
            self.state.lock().log.note_packed(&packable);
        }
    }

    /// Publishes that the resource has no further changes up to `revision`.
    pub(crate) fn advance(&self, revision: Revision) {
        {
            let mut state = self.state.lock();
            if state.stopped || state.snapshot.revision() >= revision {
                return;
            }
            let snapshot = state.snapshot.clone().at_least(revision);
            self.publish(&mut state, snapshot);
        }
        self.wake(Vec::new());
    }

    /// Publishes the same state with other indexes.
    pub(crate) fn publish_indexes(&self, snapshot: Snapshot) {
        let mut state = self.state.lock();
        if !state.stopped {
            let snapshot = snapshot.at_least(state.snapshot.revision());
            self.publish(&mut state, snapshot);
        }
    }

    fn publish(&self, state: &mut State, snapshot: Snapshot) {
        self.metrics.resource_version.store(snapshot.revision().0, Ordering::Relaxed);
        state.snapshot = snapshot.clone();
        self.snapshot.store(Some(Arc::new(snapshot)));
    }

    /// Wakes the readers that wait for the published revision, and the given watchers.
    fn wake(&self, wakers: Vec<Waker>) {
        if let Some(snapshot) = self.snapshot.load().as_deref() {
            let revision = snapshot.revision();
            self.progress.send_if_modified(|progress| {
                let before = *progress;
                if progress.phase != Phase::Stopped {
                    *progress = Progress { revision: revision.max(before.revision), phase: Phase::Ready };
                }
                *progress != before
            });
        }
        self.wake_watchers(wakers);
    }

    pub(crate) fn wake_watchers(&self, wakers: Vec<Waker>) {
        metrics::add(&self.metrics.wake_ups, wakers.len());
        for waker in wakers {
            waker.wake();
        }
    }

    /// Holds what a reader has of a state, until it is dropped or memory is short. `most` is an upper bound of its bytes.
    pub(crate) fn hold<T: Send + 'static>(&self, snapshot: &Snapshot, most: usize, content: T) -> Held<T> {
        let own_bytes = self.own_bytes(snapshot).min(most);
        held::hold(&self.held, snapshot.revision(), own_bytes, content)
    }

    /// Holds what a reader has that is part of no state, until it is dropped or memory is short.
    pub(crate) fn hold_apart<T: Send + 'static>(&self, bytes: usize, content: T) -> Held<T> {
        held::hold(&self.held_apart, Revision(0), bytes, content)
    }

    /// The bytes of a state that are no part of the present one.
    fn own_bytes(&self, snapshot: &Snapshot) -> usize {
        if !snapshot.is_of_cache() {
            let present = self.load().unwrap_or_default();
            let is_shared = |object: &CachedObject| {
                present.get(object.key()).is_some_and(|present| present.shares_contents(object))
            };
            let own = snapshot.range("", None).filter(|object| !is_shared(object));
            return own.map(|object| object.memory()).sum();
        }
        // Most lists have the present state: the lock, which a dispatch may hold, is not taken for them.
        if self.load().is_some_and(|present| present.is_same_state(snapshot)) {
            return 0;
        }
        let state = self.state.lock();
        match state.log.few_after(snapshot.revision()) {
            Some(since) => since.iter().map(|change| change.bytes_of(snapshot.revision())).sum(),
            // It was rebuilt from the event log, or retained for a continue token.
            None => self.config.log_bytes_max + self.config.retained_bytes_max,
        }
    }

    /// Ends every watch after the changes published so far.
    pub(crate) fn end_watches(&self) {
        let wakers = self.finish_watchers(&mut self.state.lock());
        self.wake_watchers(wakers);
    }

    /// Ends every watch after the changes published so far, and fails waiting reads.
    pub(crate) fn stop(&self) {
        self.empty(Phase::Stopped);
    }

    /// Ends every watch and drops all state, because no task follows the store. Reads wait for the next list.
    pub(crate) fn begin_anew(&self) {
        self.set_queued(None);
        self.empty(Phase::Pending);
    }

    fn empty(&self, phase: Phase) {
        // Readers that find no snapshot below wait for the next one, or for the stop.
        self.begin_phase(Phase::Pending);
        let wakers = {
            let mut state = self.state.lock();
            if state.stopped {
                return;
            }
            let ended_before = state.last_changes.clone();
            let wakers = self.finish_watchers(&mut state);
            state.stopped = phase == Phase::Stopped;
            if !state.stopped {
                state.last_changes = ended_before;
            }
            state.snapshot = Snapshot::default();
            drop(self.retained.lock().reset(&state.snapshot));
            state.log.reset(Revision(0));
            self.snapshot.store(None);
            wakers
        };
        self.begin_phase(phase);
        self.wake_watchers(wakers);
    }

    /// Begins a phase without a state; a stopped cacher stays so.
    fn begin_phase(&self, phase: Phase) {
        self.progress.send_if_modified(|progress| {
            let may_change = progress.phase != Phase::Stopped;
            if may_change {
                *progress = Progress { revision: Revision(0), phase };
            }
            may_change
        });
    }

    fn finish_watchers(&self, state: &mut State) -> Vec<Waker> {
        let (first, changes) = state.log.all();
        let changes = Arc::new(LastChanges::new(first, changes));
        let wakers = state.watchers.drain().filter_map(|target| target.finish(&changes)).collect();
        state.last_changes = Some(changes);
        wakers
    }

    /// Removes a dropped watcher from the index.
    pub(crate) fn forget(&self, target: &Arc<WatchTarget>) {
        {
            let mut state = self.state.lock();
            state.watchers.remove(target);
            state.bookmarks.remove(target);
        }
        self.metrics.watchers.fetch_sub(1, Ordering::Relaxed);
    }

    /// The item of a change for a watcher; `None` if the watcher does not see the change.
    pub(crate) fn item(&self, target: &WatchTarget, change: Change) -> Option<WatchItem> {
        let event_type = target.event_type(&change)?;
        Some(WatchItem::Event { event_type, event: Arc::new(self.event(change)) })
    }

    pub(crate) fn event(&self, change: Change) -> WatchEvent {
        WatchEvent::new(change, self.config.decoder.clone())
    }

    /// Decodes a stored pair. A pair that does not decode is logged by its key alone, because its bytes may be a
    /// Secret's, and omitted: one bad object must not make the others unavailable.
    pub(crate) fn decode(&self, kv: &KeyValue) -> Result<Arc<CachedObject>, UnreadableObject> {
        self.decode_by(kv, CachedObject::new)
    }

    /// As [`Shared::decode`]; `make` makes the object.
    pub(crate) fn decode_by(
        &self,
        kv: &KeyValue,
        make: impl Fn(Key, Revision, DecodedObject) -> CachedObject,
    ) -> Result<Arc<CachedObject>, UnreadableObject> {
        let decoded = match &kv.state {
            ValueState::Current | ValueState::Stale => {
                let decoded = self.config.decoder.decode(&kv.key, &kv.value, kv.mod_revision);
                decoded.map_err(|error| ReadError::Decode(TransformError(error.0)))
            }
            ValueState::Unreadable(error) => Err(error.clone()),
        };
        match decoded {
            Ok(decoded) => Ok(Arc::new(make(kv.key.clone(), kv.mod_revision, decoded))),
            Err(error) => {
                self.metrics.decode_errors.fetch_add(1, Ordering::Relaxed);
                let stage = match error {
                    ReadError::Transform(_) => "transform",
                    ReadError::Decode(_) => "decode",
                };
                tracing::error!(
                    resource = %self.config.resource, key = %kv.key, revision = %kv.mod_revision, stage,
                    "a stored object cannot be read and is left out"
                );
                Err(UnreadableObject { revision: kv.mod_revision, error, last: None })
            }
        }
    }
}
