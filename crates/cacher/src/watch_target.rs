//! The sending end of a watch: what the dispatcher sees of a [`crate::Watcher`].
//!
//! A bounded queue of shared events. When it is full the watcher is told where to read on in the event log instead, and
//! nothing more is queued until it has caught up there; so a slow watcher costs its queue, and holds nobody. It is cut
//! off when the log no longer has what it would need.

use crate::{
    CachedObject, Predicate, WatchItem, WatchScope,
    batch::Batch,
    event::{Change, EventType, WatchEvent},
    event_log::Position,
    watcher_index::{Bucket, Requirement},
};
use parking_lot::Mutex;
use pintle_storage::Revision;
use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::time::Instant;

/// How many bytes wait for a watcher before it is told to catch up from the event log, which keeps them for all.
const QUEUE_BYTES: usize = 4 << 20;

/// How long before its deadline a watch gets its last bookmark.
const BOOKMARK_BEFORE_DEADLINE: Duration = Duration::from_secs(2);

pub(crate) struct WatchTarget {
    pub(crate) filter: WatchFilter,
    pub(crate) bucket: Bucket,
    /// Not before this one, for watches that begin in the future.
    pub(crate) after: Revision,
    pub(crate) deadline: Option<Instant>,
    capacity: usize,
    queue: Mutex<Queue>,
}

struct Queue {
    items: VecDeque<WatchItem>,
    /// What the items keep, in bytes.
    bytes: usize,
    /// Where the event log goes on after `items`. While this is set nothing is queued.
    behind: Option<Position>,
    ended: bool,
    waker: Option<Waker>,
}

/// Which objects a watcher sees.
pub(crate) struct WatchFilter {
    pub(crate) scope: WatchScope,
    pub(crate) requirement: Option<Requirement>,
    pub(crate) predicate: Option<Predicate>,
    /// The predicate is asked by the watcher alone, under no lock.
    pub(crate) is_slow: bool,
}

impl WatchFilter {
    pub(crate) fn matches(&self, object: &CachedObject) -> bool {
        self.may_match(object) && self.predicate.as_ref().is_none_or(|predicate| predicate(object))
    }

    /// What is asked where others wait: all but a slow predicate.
    fn matches_quickly(&self, object: &CachedObject) -> bool {
        if self.is_slow { self.may_match(object) } else { self.matches(object) }
    }

    fn may_match(&self, object: &CachedObject) -> bool {
        let in_scope = match &self.scope {
            WatchScope::All => true,
            WatchScope::Namespace(namespace) => object.namespace() == &**namespace,
            WatchScope::Object(key) => object.key() == key,
        };
        in_scope && self.requirement.as_ref().is_none_or(|requirement| requirement.matches(object))
    }
}

/// What [`WatchTarget::poll`] finds after the items.
pub(crate) enum Next {
    /// There may be more.
    Item,
    /// The log, from a position on.
    Log(Position),
    /// Nothing ever.
    End,
}

impl WatchTarget {
    /// A watcher that will begin with reading the log from a position on.
    pub(crate) fn new(
        filter: WatchFilter,
        bucket: Bucket,
        after: Revision,
        from: Position,
        deadline: Option<Instant>,
        capacity: usize,
    ) -> WatchTarget {
        let queue = Queue { items: VecDeque::new(), bytes: 0, behind: Some(from), ended: false, waker: None };
        WatchTarget { filter, bucket, after, deadline, capacity, queue: Mutex::new(queue) }
    }

    /// What a change is to the watcher, if anything. With a slow predicate it is what it may be: the watcher asks
    /// [`WatchTarget::judge`] before it delivers the item.
    pub(crate) fn event_type(&self, change: &Change) -> Option<EventType> {
        (change.revision > self.after)
            .then(|| change.event_type(|object| self.filter.matches_quickly(object)))?
    }

    /// Takes those items from a place on that a slow predicate does not want, and gives the others their types.
    pub(crate) fn judge(&self, items: &mut Vec<WatchItem>, from: usize) {
        let judged: Vec<WatchItem> = items
            .drain(from..)
            .filter_map(|item| match item {
                WatchItem::Event { event, .. } => {
                    let event_type = event.change().event_type(|object| self.filter.matches(object))?;
                    Some(WatchItem::Event { event_type, event })
                }
                bookmark @ WatchItem::Bookmark { .. } => Some(bookmark),
            })
            .collect();
        items.extend(judged);
    }

    /// Queues a change if the watcher wants it. `event` is what is shared with the other watchers, made by `make` for
    /// the first. Returns whom to wake.
    pub(crate) fn offer(
        &self,
        change: &Change,
        at: Position,
        event: &mut Option<Arc<WatchEvent>>,
        make: impl FnOnce() -> WatchEvent,
    ) -> Option<Waker> {
        let mut queue = self.queue.lock();
        if queue.behind.is_some() || queue.ended {
            return None;
        }
        let event_type = self.event_type(change)?;
        let bytes = change.bytes();
        let is_full = queue.items.len() >= self.capacity || queue.bytes + bytes > QUEUE_BYTES;
        // An object that is larger than a queue may be goes through an empty one.
        if is_full && !queue.items.is_empty() {
            queue.behind = Some(at);
            return None;
        }
        queue.bytes += bytes;
        let event = event.get_or_insert_with(|| Arc::new(make())).clone();
        queue.items.push_back(WatchItem::Event { event_type, event });
        queue.waker.take()
    }

    /// Queues a bookmark, unless the watcher has to catch up first.
    pub(crate) fn offer_bookmark(&self, revision: Revision) -> Option<Waker> {
        let mut queue = self.queue.lock();
        if queue.behind.is_some()
            || queue.ended
            || revision < self.after
            || queue.items.len() >= self.capacity
        {
            return None;
        }
        let bookmark = WatchItem::Bookmark { revision, initial_events_end: false };
        match queue.items.back_mut() {
            Some(last @ WatchItem::Bookmark { .. }) => *last = bookmark,
            _ => queue.items.push_back(bookmark),
        }
        queue.waker.take()
    }

    /// Nothing follows what happened so far. A watcher that is behind gets `rest`, from its position on, as a whole:
    /// there will be no log to read it from.
    pub(crate) fn finish(&self, rest: impl FnOnce(Position) -> Vec<WatchItem>) -> Option<Waker> {
        let mut queue = self.queue.lock();
        let behind = queue.behind.take();
        let was_ended = std::mem::replace(&mut queue.ended, true);
        if let Some(position) = behind.filter(|_| !was_ended) {
            queue.items.extend(rest(position));
        }
        queue.waker.take()
    }

    /// Nothing follows what is queued.
    pub(crate) fn end(&self) -> Option<Waker> {
        let mut queue = self.queue.lock();
        queue.ended = true;
        queue.waker.take()
    }

    /// Where the watcher has to read on, after it has read the log; `None` when it has seen all of it. To be called
    /// with the log locked, so that nothing comes in between.
    pub(crate) fn set_behind(&self, behind: Option<Position>) {
        self.queue.lock().behind = behind;
    }

    /// Whether the watcher has to read the log.
    pub(crate) fn is_behind(&self) -> bool {
        let queue = self.queue.lock();
        queue.behind.is_some() && !queue.ended
    }

    /// Moves at most `max` queued items to `batch`. Pending, with the waker kept, when there are none and more may come.
    pub(crate) fn poll(&self, cx: &mut Context<'_>, max: usize, batch: &mut Batch<'_>) -> Poll<Next> {
        let mut queue = self.queue.lock();
        if !queue.items.is_empty() {
            let taken = batch.fill(&mut queue.items, max);
            queue.bytes = queue.bytes.saturating_sub(taken);
            return Poll::Ready(Next::Item);
        }
        queue.bytes = 0;
        // A burst's memory is not kept for the years of quiet after it.
        if queue.items.capacity() > 64 {
            queue.items = VecDeque::new();
        }
        if queue.ended {
            return Poll::Ready(Next::End);
        }
        if let Some(position) = queue.behind {
            return Poll::Ready(Next::Log(position));
        }
        let former = match &queue.waker {
            Some(waker) if waker.will_wake(cx.waker()) => None,
            _ => queue.waker.replace(cx.waker().clone()),
        };
        drop(queue);
        // Not under the lock: it may be the last thing that holds a task, whatever that does when it goes.
        drop(former);
        Poll::Pending
    }

    /// When the next bookmark is due: after `period`, or shortly before the deadline; `None` after that.
    pub(crate) fn next_bookmark(&self, now: Instant, period: Duration) -> Option<Instant> {
        let regular = now + period;
        let Some(deadline) = self.deadline else { return Some(regular) };
        let last = deadline.checked_sub(BOOKMARK_BEFORE_DEADLINE)?;
        (last > now).then(|| regular.min(last))
    }

    #[cfg(test)]
    pub(crate) fn queued(&self) -> usize {
        self.queue.lock().items.len()
    }
}
