//! The receiving end of a watch.
//!
//! A watcher reads, in this order: the initial state from its snapshot, if the watch requested one; the event log
//! from there on; then its queue. After an overflow of the queue it reads the event log again. See
//! [`crate::watch_target`] for the sending end.

use crate::{
    Held, Snapshot, WatchItem, WatchScope,
    batch::Batch,
    event::{Change, EventType},
    event_log::Position,
    metrics,
    shared::Shared,
    watch_target::{Next, WatchTarget},
};
use pintle_storage::Key;
use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

/// The number of changes copied from the event log at a time, under its lock.
const LOG_CHUNK: usize = 256;
/// The largest size in bytes of the changes copied at a time; a single change may be larger.
const LOG_CHUNK_BYTES: usize = 1 << 20;
/// The number of chunks without an event for the watcher that are read before the task yields.
const CHUNKS_PER_POLL: usize = 32;

/// The number of objects of the initial state that are examined before the task yields.
const OBJECTS_PER_POLL: usize = 4096;
/// The number of items or objects that a slow predicate evaluates before the task yields.
const JUDGED_PER_POLL: usize = 64;

/// One client's watch. Dropping it ends the watch.
pub struct Watcher {
    shared: Arc<Shared>,
    target: Arc<WatchTarget>,
    initial: Option<Held<Initial>>,
    /// Items that were read from the event log and not delivered yet.
    from_log: VecDeque<WatchItem>,
}

/// The part of the initial state that was not delivered yet.
struct Initial {
    snapshot: Snapshot,
    prefix: String,
    delivered: Option<Key>,
    bookmark: bool,
}

impl Watcher {
    pub(crate) fn new(shared: Arc<Shared>, target: Arc<WatchTarget>) -> Watcher {
        Watcher { shared, target, initial: None, from_log: VecDeque::new() }
    }

    /// Delivers the objects of a snapshot first, and a bookmark after them if `bookmark` is set.
    pub(crate) fn with_initial_events(mut self, snapshot: Snapshot, bookmark: bool) -> Watcher {
        let prefix = match &self.target.filter.scope {
            WatchScope::All => self.shared.config.prefix.to_string(),
            WatchScope::Namespace(namespace) => format!("{}{namespace}/", self.shared.config.prefix),
            WatchScope::Object(key) => key.to_string(),
        };
        let initial = Initial { snapshot: snapshot.clone(), prefix, delivered: None, bookmark };
        self.initial = Some(self.shared.hold(&snapshot, usize::MAX, initial));
        self
    }

    /// The next item; `None` when the watch has ended because the watcher was too slow, its initial state took too much
    /// memory ([`Held`]), the store's history had a gap, or the cacher ended its watches. The client then resumes from the last revision it has seen.
    ///
    /// Cancel safe: a dropped call loses nothing.
    pub async fn next(&mut self) -> Option<WatchItem> {
        let mut items = Vec::with_capacity(1);
        poll_fn(|cx| self.poll_batch(cx, 1, &mut items)).await;
        items.pop()
    }

    /// Waits for at least one item and appends the ready items to `items`, at most `limit`; their total size is
    /// bounded, but a single larger item is delivered. `false` when the watch has ended.
    ///
    /// Cancel safe: a dropped call loses nothing, and appended items count as delivered.
    pub async fn next_batch(&mut self, limit: usize, items: &mut Vec<WatchItem>) -> bool {
        poll_fn(|cx| self.poll_batch(cx, limit, items)).await > 0
    }

    /// [`Watcher::next_batch`] for manual polling: the number of items appended, 0 when the watch has ended.
    pub fn poll_batch(
        &mut self,
        cx: &mut Context<'_>,
        limit: usize,
        items: &mut Vec<WatchItem>,
    ) -> Poll<usize> {
        let mut batch = Batch::new(items, limit.max(1));
        let mut chunks = 0;
        let is_slow = self.target.filter.is_slow;
        let mut left = if is_slow { JUDGED_PER_POLL } else { OBJECTS_PER_POLL };
        loop {
            let count = batch.len();
            if batch.is_full() {
                return Poll::Ready(count);
            }
            if left == 0 || chunks > CHUNKS_PER_POLL {
                cx.waker().wake_by_ref();
                return if count > 0 { Poll::Ready(count) } else { Poll::Pending };
            }
            if let Some(held) = &self.initial {
                // Without the rest of the state, the events after it mean nothing.
                let Some(mut initial) = held.take() else {
                    if count == 0 {
                        self.cut_off();
                    }
                    return Poll::Ready(count);
                };
                let over = initial.deliver(&self.shared, &self.target, &mut left, &mut batch);
                metrics::add(&self.shared.metrics.init_events, batch.len() - count);
                match over {
                    true => self.initial = None,
                    false => held.put_back(initial),
                }
                continue;
            }
            let wanted = if is_slow { left } else { usize::MAX };
            if !self.from_log.is_empty() {
                batch.fill(&mut self.from_log, wanted);
                if is_slow {
                    left = left.saturating_sub(batch.len() - count);
                    batch.judge(count, |items, from| self.target.judge(items, from));
                }
                continue;
            }
            match self.target.poll(cx, wanted, &mut batch) {
                Poll::Ready(Next::Item) if is_slow => {
                    left = left.saturating_sub(batch.len() - count);
                    batch.judge(count, |items, from| self.target.judge(items, from));
                }
                Poll::Ready(Next::Item) => {}
                Poll::Ready(Next::Log(from)) => {
                    chunks += 1;
                    self.read_log(from);
                }
                Poll::Ready(Next::LastChanges(changes, from)) => {
                    chunks += 1;
                    let rest = changes.rest(from);
                    let read = rest.map(|rest| from.read(rest.iter(), LOG_CHUNK, LOG_CHUNK_BYTES));
                    self.target.set_behind(read.as_ref().map(|(_, next)| *next));
                    self.take_from_log(read.map_or(Vec::new(), |(changes, _)| changes));
                }
                Poll::Ready(Next::End) => return Poll::Ready(count),
                Poll::Pending if count > 0 => return Poll::Ready(count),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Whether objects of the initial state remain to be delivered.
    pub fn is_delivering_state(&self) -> bool {
        self.initial.is_some()
    }

    /// Whether the watcher still has to read the event log. [`Watcher::poll_batch`] may yield to other tasks before
    /// it has delivered all ready items.
    pub fn is_behind(&self) -> bool {
        self.target.is_behind()
    }

    #[cfg(test)]
    pub(crate) fn target(&self) -> &Arc<WatchTarget> {
        &self.target
    }

    fn read_log(&mut self, from: Position) {
        let changes = {
            let state = self.shared.state.lock();
            if state.last_changes.is_some() {
                // This watcher has the remaining changes.
                return;
            }
            let Some((changes, next)) = state.log.read_bytes(from, LOG_CHUNK, LOG_CHUNK_BYTES) else {
                drop(state);
                self.cut_off();
                return;
            };
            // The log is locked: a later change is either queued, or will be read from the log.
            self.target.set_behind((next != state.log.end()).then_some(next));
            changes
        };
        self.take_from_log(changes);
    }

    fn take_from_log(&mut self, changes: Vec<Change>) {
        self.from_log =
            changes.into_iter().filter_map(|change| self.shared.item(&self.target, change)).collect();
        metrics::add(&self.shared.metrics.init_events, self.from_log.len());
    }

    fn cut_off(&self) {
        tracing::debug!(resource = %self.shared.config.resource, "a watcher was too slow and is cut off");
        self.shared.metrics.terminated_watchers.fetch_add(1, Ordering::Relaxed);
        self.target.end();
    }
}

impl Initial {
    /// Fills a batch after examining at most `left` objects. Returns whether the initial state is delivered.
    fn deliver(
        &mut self,
        shared: &Shared,
        target: &WatchTarget,
        left: &mut usize,
        batch: &mut Batch<'_>,
    ) -> bool {
        let mut last: Option<&Key> = None;
        let requirement = target.filter.requirement.as_ref();
        for object in self.snapshot.candidates(&self.prefix, self.delivered.as_ref(), requirement) {
            if *left == 0 {
                self.delivered = last.cloned().or(self.delivered.take());
                return false;
            }
            if !batch.has_room(object.size()) {
                self.delivered = last.cloned().or(self.delivered.take());
                return false;
            }
            *left -= 1;
            last = Some(object.key());
            if target.filter.matches(object) {
                let change =
                    Change { revision: object.revision(), current: Some(object.clone()), previous: None };
                let event = Arc::new(shared.event(change));
                batch.push(WatchItem::Event { event_type: EventType::Added, event });
            }
        }
        if batch.is_full() {
            self.delivered = last.cloned().or(self.delivered.take());
            return false;
        }
        if self.bookmark {
            let revision = self.snapshot.revision();
            batch.push(WatchItem::Bookmark { revision, initial_events_end: true });
        }
        true
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.forget(&self.target);
    }
}
