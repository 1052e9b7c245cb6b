//! The sending end of a watch: the dispatcher's view of a [`crate::Watcher`].
//!
//! A bounded queue of shared events. When it is full, the watcher gets a position from which to continue in the event
//! log, and nothing is queued until it has caught up there; so a slow watcher costs at most its queue, and delays no
//! other. It is cut off when the log has dropped a change that it needs.

use crate::{
    ByteBudget, CachedObject, Predicate, Requirement, WatchItem, WatchScope,
    batch::Batch,
    bucket::Bucket,
    byte_budget::BudgetedBytes,
    event::{Change, EventType, WatchEvent},
    event_log::Position,
    last_changes::LastChanges,
    place::Place,
};
use parking_lot::Mutex;
use pintle_storage::Revision;
use std::{
    collections::VecDeque,
    sync::{Arc, atomic::AtomicU64},
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::time::Instant;

/// The number of bytes in a watcher's queue above which the watcher reads the event log, which all watchers share.
const QUEUE_BYTES: usize = 4 << 20;

/// The time before a watch's deadline at which it gets its last bookmark.
const BOOKMARK_BEFORE_DEADLINE: Duration = Duration::from_secs(2);

pub(crate) struct WatchTarget {
    pub(crate) filter: WatchFilter,
    pub(crate) bucket: Bucket,
    /// The place in the bucket of the index.
    pub(crate) in_index: Place,
    /// The bucket of the next bookmark, and the place there.
    pub(crate) bookmark_bucket: AtomicU64,
    pub(crate) in_bookmarks: Place,
    /// Only later changes are delivered; it may be in the future.
    pub(crate) after: Revision,
    pub(crate) deadline: Option<Instant>,
    capacity: usize,
    queue: Mutex<Queue>,
}

struct Queue {
    items: VecDeque<WatchItem>,
    /// The size of the items' objects, in bytes. Objects in several queues are counted in each.
    bytes: BudgetedBytes,
    /// The position in the event log that continues `items`. While it is set, nothing is queued.
    behind: Option<Position>,
    ended: bool,
    /// The changes that continue `items` in an ended watch, if it was behind.
    last_changes: Option<Arc<LastChanges>>,
    waker: Option<Waker>,
}

/// The objects that a watcher sees.
pub(crate) struct WatchFilter {
    pub(crate) scope: WatchScope,
    pub(crate) requirement: Option<Requirement>,
    pub(crate) predicate: Option<Predicate>,
    /// Only the watcher's own task calls the predicate, and under no lock.
    pub(crate) is_slow: bool,
}

impl WatchFilter {
    pub(crate) fn matches(&self, object: &CachedObject) -> bool {
        self.may_match(object) && self.predicate.as_ref().is_none_or(|predicate| predicate(object))
    }

    /// The check on the dispatcher's path: everything but a slow predicate.
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

/// The result of [`WatchTarget::poll`].
pub(crate) enum Next {
    /// Items were taken; there may be more.
    Item,
    /// The watcher has to read the event log from this position.
    Log(Position),
    /// The watch ends after these changes from this position on.
    LastChanges(Arc<LastChanges>, Position),
    /// The watch has ended.
    End,
}

impl WatchTarget {
    /// A target whose watcher begins by reading the log from `from`.
    pub(crate) fn new(
        filter: WatchFilter,
        bucket: Bucket,
        after: Revision,
        from: Position,
        deadline: Option<Instant>,
        capacity: usize,
        budget: ByteBudget,
    ) -> WatchTarget {
        let bytes = BudgetedBytes::new(budget);
        let (items, behind) = (VecDeque::new(), Some(from));
        let queue = Queue { items, bytes, behind, ended: false, last_changes: None, waker: None };
        let (in_index, in_bookmarks) = (Place::default(), Place::default());
        let bookmark_bucket = AtomicU64::new(0);
        WatchTarget {
            filter,
            bucket,
            in_index,
            bookmark_bucket,
            in_bookmarks,
            after,
            deadline,
            capacity,
            queue: Mutex::new(queue),
        }
    }

    /// The type of a change for the watcher; `None` if the watcher does not see it. With a slow predicate the type is
    /// provisional: the watcher calls [`WatchTarget::judge`] before it delivers the item.
    pub(crate) fn event_type(&self, change: &Change) -> Option<EventType> {
        (change.revision > self.after)
            .then(|| change.event_type(|object| self.filter.matches_quickly(object)))?
    }

    /// Applies the slow predicate to the items from index `from` on: removes items that do not match, and sets the
    /// types of the others.
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

    /// Queues a change if it matches. The watchers share `event`, which `make` creates for the first of them. Returns
    /// the waker of a waiting watcher.
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
        let is_full = queue.items.len() >= self.capacity
            || queue.bytes.get() + bytes > QUEUE_BYTES
            || queue.bytes.is_too_much();
        // A change larger than the whole queue is accepted when the queue is empty.
        if is_full && !queue.items.is_empty() {
            queue.behind = Some(at);
            return None;
        }
        queue.bytes.add(bytes);
        let event = event.get_or_insert_with(|| Arc::new(make())).clone();
        queue.items.push_back(WatchItem::Event { event_type, event });
        queue.waker.take()
    }

    /// Queues a bookmark, unless the watcher has to catch up first. Returns the waker of a waiting watcher.
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

    /// Ends the watch after the changes published so far. A watcher that is behind reads `last_changes`, which all of
    /// them share, because it cannot read the log afterwards. Returns the waker of a waiting watcher.
    pub(crate) fn finish(&self, last_changes: &Arc<LastChanges>) -> Option<Waker> {
        let mut queue = self.queue.lock();
        let was_ended = std::mem::replace(&mut queue.ended, true);
        if queue.behind.is_some() && !was_ended {
            queue.last_changes = Some(last_changes.clone());
        }
        queue.waker.take()
    }

    /// Ends the watch after the queued items. Returns the waker of a waiting watcher.
    pub(crate) fn end(&self) -> Option<Waker> {
        let mut queue = self.queue.lock();
        queue.ended = true;
        queue.waker.take()
    }

    /// Sets the position at which the watcher has to continue in the event log or the last changes; `None` when it has
    /// read all. Must be called with the log locked, so that no change is published in between, unless the watch has ended.
    pub(crate) fn set_behind(&self, behind: Option<Position>) {
        self.queue.lock().behind = behind;
    }

    /// Whether the watcher has to read the event log.
    pub(crate) fn is_behind(&self) -> bool {
        let queue = self.queue.lock();
        queue.behind.is_some() && (!queue.ended || queue.last_changes.is_some())
    }

    /// Moves at most `max` queued items to `batch`. Pending, with the waker registered, when the queue is empty and
    /// more may come.
    pub(crate) fn poll(&self, cx: &mut Context<'_>, max: usize, batch: &mut Batch<'_>) -> Poll<Next> {
        let mut queue = self.queue.lock();
        if !queue.items.is_empty() {
            let taken = batch.fill(&mut queue.items, max);
            queue.bytes.remove(taken);
            return Poll::Ready(Next::Item);
        }
        let counted = queue.bytes.get();
        queue.bytes.remove(counted);
        // Releases the memory of a burst.
        if queue.items.capacity() > 64 {
            queue.items = VecDeque::new();
        }
        if queue.ended {
            let rest = queue.last_changes.clone().zip(queue.behind);
            return Poll::Ready(rest.map_or(Next::End, |(changes, from)| Next::LastChanges(changes, from)));
        }
        if let Some(position) = queue.behind {
            return Poll::Ready(Next::Log(position));
        }
        let former = match &queue.waker {
            Some(waker) if waker.will_wake(cx.waker()) => None,
            _ => queue.waker.replace(cx.waker().clone()),
        };
        drop(queue);
        // Dropped after the lock is released: it may be the last reference to a task, whose destructor may do
        // anything.
        drop(former);
        Poll::Pending
    }

    /// The time of the next bookmark: after `period`, or shortly before the deadline; `None` once the last one was
    /// due.
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A target for all objects, with a deadline.
    pub(crate) fn target(deadline: Option<Instant>) -> Arc<WatchTarget> {
        let filter =
            WatchFilter { scope: WatchScope::All, requirement: None, predicate: None, is_slow: false };
        let budget = ByteBudget::new(1 << 20, 0);
        Arc::new(WatchTarget::new(filter, Bucket::All, Revision(0), Position::default(), deadline, 1, budget))
    }
}
