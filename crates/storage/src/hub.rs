//! Delivers live watch events: every committed batch passes once through the hub, which queues to each watcher the
//! events of its prefix.
//!
//! The watchers are indexed by prefix ([`PrefixIndex`]): an event costs time for the watchers that want it, however many
//! others there are. A server has a watcher for each resource, custom resources included.
//!
//! A watcher owns a bounded queue. A watcher that does not keep up gets [`StorageError::Lagged`] after its queued
//! events, and restarts from there; it never delays the writers or other watchers, and never costs more memory than
//! the bound.
//!
//! Lock order: the index of watchers, then one watcher's queue.

mod prefix_index;

use crate::{BoxFuture, Revision, StorageError, StorageEvent, WatchReceiver};
use parking_lot::Mutex;
use prefix_index::PrefixIndex;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::Notify;

/// The bounds of a watcher's queue: events, or bytes of values, whichever is reached first.
const MAX_QUEUED_EVENTS: usize = 16 * 1024;
const MAX_QUEUED_BYTES: usize = 32 << 20;

/// All live watchers of an engine.
#[derive(Default)]
pub(crate) struct WatchHub {
    state: Mutex<HubState>,
}

#[derive(Default)]
struct HubState {
    watchers: PrefixIndex<Arc<Watcher>>,
    /// All events up to this revision are queued to the watchers of their prefixes.
    published: Revision,
    /// The store has reported this revision, but its events may not have arrived; see [`WatchHub::doubt`].
    doubted: Revision,
    closed: bool,
}

struct Watcher {
    prefix: String,
    after: Revision,
    queue: Mutex<Queue>,
    ready: Notify,
    /// See [`WatchReceiver::queued_revision`].
    queued: Arc<AtomicU64>,
}

#[derive(Default)]
struct Queue {
    events: Vec<StorageEvent>,
    bytes: usize,
    /// The revision of the last queued write, or the published revision when the watcher was added.
    written: u64,
    /// No event will be queued any more.
    ended: bool,
}

impl WatchHub {
    /// A hub of a store that is at `revision`.
    pub(crate) fn new(revision: Revision) -> Arc<WatchHub> {
        let hub = WatchHub::default();
        hub.state.lock().published = revision;
        Arc::new(hub)
    }

    /// A watch of all events that are published from now on, and the revision up to which events were published
    /// before: the caller reads those from history.
    pub(crate) fn watch(
        self: &Arc<Self>,
        prefix: String,
        after: Revision,
    ) -> Result<(HubReceiver, Revision), StorageError> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(StorageError::Closed);
        }
        let written = state.published.0;
        let queued = Arc::new(AtomicU64::new(if state.is_doubtful() { u64::MAX } else { written }));
        let queue = Mutex::new(Queue { written, ..Queue::default() });
        let watcher = Arc::new(Watcher { prefix, after, queue, ready: Notify::new(), queued });
        state.watchers.insert(&watcher.prefix, Arc::clone(&watcher));
        Ok((HubReceiver { hub: Arc::clone(self), watcher }, state.published))
    }

    /// Queues committed events, in revision order, to their watchers. The last event has `revision`.
    pub(crate) fn publish(&self, events: &[StorageEvent], revision: Revision) {
        let mut state = self.state.lock();
        let was_doubtful = state.is_doubtful();
        state.published = revision;
        let is_doubtful = state.is_doubtful();
        let mut wanted = Vec::new();
        for event in events {
            let StorageEvent::Write { kv, .. } = event else { continue };
            for (prefix, watchers) in state.watchers.prefixes_of(kv.key.as_str()) {
                wanted.push((prefix, watchers, event));
            }
        }
        // A watcher gets its events of the batch together, and is woken once. The sort is stable: they stay in order.
        wanted.sort_by_key(|(prefix, ..)| *prefix);
        let mut ended = Vec::new();
        for of_prefix in wanted.chunk_by(|(a, ..), (b, ..)| a == b) {
            let Some((_, watchers, _)) = of_prefix.first() else { continue };
            for watcher in *watchers {
                if !watcher.publish(of_prefix.iter().map(|(.., event)| *event), is_doubtful) {
                    ended.push(Arc::clone(watcher));
                }
            }
        }
        for watcher in ended {
            state.remove(&watcher);
        }
        if was_doubtful && !is_doubtful {
            for watcher in state.watchers.iter() {
                watcher.store_queued();
            }
        }
    }

    /// The store has reached `revision`, but events up to it may still arrive. Until they have been published,
    /// [`WatchReceiver::queued_revision`] is unknown.
    pub(crate) fn doubt(&self, revision: Revision) {
        let mut state = self.state.lock();
        state.doubted = state.doubted.max(revision);
        if state.is_doubtful() {
            for watcher in state.watchers.iter() {
                watcher.queued.store(u64::MAX, Ordering::Release);
            }
        }
    }

    /// Ends all watches with an error, because the events up to `revision` are lost. New watches begin there.
    pub(crate) fn restart(&self, revision: Revision, error: &StorageError) {
        let mut state = self.state.lock();
        state.published = revision;
        // The store may have gone back: revisions it reported before will not arrive.
        state.doubted = state.doubted.min(revision);
        for watcher in state.watchers.drain() {
            watcher.end(Some(error));
        }
    }

    /// Queues a progress event to every watcher.
    pub(crate) fn progress(&self) {
        let state = self.state.lock();
        for watcher in state.watchers.iter() {
            watcher.progress(state.published);
        }
    }

    /// Ends all watches after their queued events, with `error` if there is one.
    pub(crate) fn close(&self, error: Option<&StorageError>) {
        let mut state = self.state.lock();
        state.closed = true;
        for watcher in state.watchers.drain() {
            watcher.end(error);
        }
    }
}

impl HubState {
    fn is_doubtful(&self) -> bool {
        self.doubted > self.published
    }

    fn remove(&mut self, watcher: &Arc<Watcher>) {
        self.watchers.remove(&watcher.prefix, |other| Arc::ptr_eq(other, watcher));
    }
}

impl Watcher {
    /// Queues the events of the watcher's prefix. Returns whether the watcher continues.
    fn publish<'a>(&self, events: impl Iterator<Item = &'a StorageEvent>, is_doubtful: bool) -> bool {
        let mut wanted = events.filter(|event| self.wants(event)).peekable();
        if wanted.peek().is_none() {
            return true;
        }
        let mut queue = self.queue.lock();
        for event in wanted {
            if let StorageEvent::Write { kv, revision, .. } = event {
                queue.bytes += kv.value.size();
                queue.written = revision.0;
                if !is_doubtful {
                    self.queued.store(revision.0, Ordering::Release);
                }
            }
            if queue.events.len() >= MAX_QUEUED_EVENTS || queue.bytes > MAX_QUEUED_BYTES {
                queue.events.push(StorageEvent::Error(StorageError::Lagged));
                queue.ended = true;
                self.queued.store(u64::MAX, Ordering::Release);
                break;
            }
            queue.events.push(event.clone());
        }
        let goes_on = !queue.ended;
        drop(queue);
        self.ready.notify_one();
        goes_on
    }

    fn store_queued(&self) {
        let queue = self.queue.lock();
        self.queued.store(queue.written, Ordering::Release);
    }

    fn end(&self, error: Option<&StorageError>) {
        let mut queue = self.queue.lock();
        if let Some(error) = error {
            queue.events.push(StorageEvent::Error(error.clone()));
        }
        queue.ended = true;
        self.queued.store(u64::MAX, Ordering::Release);
        drop(queue);
        self.ready.notify_one();
    }

    /// Whether the watcher wants an event of its prefix: a watch may begin at a revision that has not been reached yet.
    fn wants(&self, event: &StorageEvent) -> bool {
        match event {
            StorageEvent::Write { revision, .. } => *revision > self.after,
            StorageEvent::Progress(_) | StorageEvent::Error(_) => true,
        }
    }

    fn progress(&self, revision: Revision) {
        let mut queue = self.queue.lock();
        // The second of two consecutive progress events replaces the first.
        if let Some(StorageEvent::Progress(last)) = queue.events.last_mut() {
            *last = revision;
        } else {
            queue.events.push(StorageEvent::Progress(revision));
        }
        drop(queue);
        self.ready.notify_one();
    }
}

/// The receiving end of a watch. Dropping it removes the watcher from the hub.
pub(crate) struct HubReceiver {
    hub: Arc<WatchHub>,
    watcher: Arc<Watcher>,
}

impl HubReceiver {
    /// Inserts history before the events queued since the watch began.
    pub(crate) fn prepend(&self, history: Vec<StorageEvent>) {
        if history.is_empty() {
            return;
        }
        let mut queue = self.watcher.queue.lock();
        queue.events.splice(0..0, history);
        drop(queue);
        self.watcher.ready.notify_one();
    }
}

impl WatchReceiver for HubReceiver {
    fn next_batch(&mut self) -> BoxFuture<'_, Option<Vec<StorageEvent>>> {
        Box::pin(async move {
            loop {
                {
                    let mut queue = self.watcher.queue.lock();
                    if !queue.events.is_empty() {
                        queue.bytes = 0;
                        return Some(std::mem::take(&mut queue.events));
                    }
                    if queue.ended {
                        return None;
                    }
                }
                // `Notify` keeps a notification sent between the check above and this line.
                self.watcher.ready.notified().await;
            }
        })
    }

    fn queued_revision(&self) -> Option<Arc<AtomicU64>> {
        Some(Arc::clone(&self.watcher.queued))
    }
}

impl Drop for HubReceiver {
    fn drop(&mut self) {
        self.watcher.queued.store(u64::MAX, Ordering::Release);
        self.hub.state.lock().remove(&self.watcher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventKind, Key, KeyValue};
    use bytes::Bytes;

    fn write(revision: u64, size: usize) -> StorageEvent {
        let revision = Revision(revision);
        StorageEvent::Write {
            kind: EventKind::Create,
            revision,
            kv: KeyValue {
                key: Key::new(format!("/a/{revision}")),
                value: Bytes::from(vec![0; size]).into(),
                state: crate::ValueState::Current,
                create_revision: revision,
                mod_revision: revision,
            },
        }
    }

    #[tokio::test]
    async fn a_watcher_that_lags_ends_with_an_error_after_what_it_queued() {
        let rows = [("events", 1, MAX_QUEUED_EVENTS), ("bytes", 1 << 20, 32)];
        for (bound, size, queued) in rows {
            let hub = WatchHub::new(Revision(1));
            let (mut slow, _) = hub.watch("/a/".into(), Revision(1)).unwrap();
            for revision in 2..queued as u64 + 10 {
                hub.publish(&[write(revision, size)], Revision(revision));
            }
            let batch = slow.next_batch().await.unwrap();
            assert_eq!(batch.len(), queued + 1, "{bound}");
            assert_eq!(batch.last(), Some(&StorageEvent::Error(StorageError::Lagged)), "{bound}");
            assert_eq!(slow.next_batch().await, None, "{bound}");
            assert!(hub.state.lock().watchers.is_empty(), "{bound}");
        }
    }

    #[tokio::test]
    async fn each_watcher_gets_the_events_of_its_prefix_in_order() {
        let at = |key: &str, revision| match write(revision, 1) {
            StorageEvent::Write { kind, revision, kv } => {
                StorageEvent::Write { kind, revision, kv: KeyValue { key: Key::new(key), ..kv } }
            }
            other => other,
        };
        let batch = [at("/a/1", 2), at("/b/1", 3), at("/a/b/1", 4), at("/c", 5), at("/a/2", 6)];
        let rows: &[(&str, u64, &[u64])] = &[
            ("", 1, &[2, 3, 4, 5, 6]),
            ("/a/", 1, &[2, 4, 6]),
            ("/a/", 3, &[4, 6]),
            ("/a/b/", 1, &[4]),
            ("/b/", 1, &[3]),
        ];
        let hub = WatchHub::new(Revision(1));
        let watch = |prefix: &str, after| hub.watch(prefix.to_owned(), Revision(after)).unwrap().0;
        let mut watches: Vec<_> = rows.iter().map(|(prefix, after, _)| watch(prefix, *after)).collect();
        let _other = watch("/d/", 1);
        hub.publish(&batch, Revision(6));
        for (receiver, (prefix, after, expected)) in watches.iter_mut().zip(rows) {
            let expected: Vec<_> = expected.iter().map(|at| batch[*at as usize - 2].clone()).collect();
            assert_eq!(receiver.next_batch().await, Some(expected), "{prefix} after {after}");
        }
    }

    #[tokio::test]
    async fn a_dropped_receiver_leaves_the_hub() {
        let hub = WatchHub::new(Revision(1));
        let (receiver, published) = hub.watch(String::new(), Revision(1)).unwrap();
        assert_eq!(published, Revision(1));
        drop(receiver);
        assert!(hub.state.lock().watchers.is_empty());
    }

    #[tokio::test]
    async fn progress_comes_after_the_events_and_only_once() {
        let hub = WatchHub::new(Revision(1));
        let (mut receiver, _) = hub.watch(String::new(), Revision(1)).unwrap();
        hub.progress();
        hub.publish(&[write(2, 1)], Revision(2));
        hub.progress();
        hub.progress();
        let expected =
            vec![StorageEvent::Progress(Revision(1)), write(2, 1), StorageEvent::Progress(Revision(2))];
        assert_eq!(receiver.next_batch().await, Some(expected));
    }

    #[tokio::test]
    async fn the_queued_revision_is_the_last_write_to_the_prefix_until_nothing_is_queued_any_more() {
        let hub = WatchHub::new(Revision(5));
        let (mut receiver, _) = hub.watch("/a/".into(), Revision(1)).unwrap();
        let (other, _) = hub.watch("/b/".into(), Revision(1)).unwrap();
        let revisions = [&receiver, &other].map(|receiver| receiver.queued_revision().unwrap());
        let queued = || [0, 1].map(|at| revisions[at].load(Ordering::Acquire));
        assert_eq!(queued(), [5, 5]);
        hub.publish(&[write(6, 1), write(7, 1)], Revision(7));
        assert_eq!(queued(), [7, 5]);
        receiver.next_batch().await.unwrap();
        assert_eq!(queued(), [7, 5]);
        hub.publish(&[write(8, MAX_QUEUED_BYTES + 1)], Revision(8));
        assert_eq!(queued(), [u64::MAX, 5]);
        drop(other);
        assert_eq!(queued(), [u64::MAX, u64::MAX]);
    }

    #[tokio::test]
    async fn what_is_queued_says_nothing_while_a_revision_is_doubted() {
        let hub = WatchHub::new(Revision(5));
        let (receiver, _) = hub.watch("/a/".into(), Revision(1)).unwrap();
        let queued = receiver.queued_revision().unwrap();
        let queued = || queued.load(Ordering::Acquire);
        hub.doubt(Revision(5));
        assert_eq!(queued(), 5, "all of it was published");
        hub.doubt(Revision(8));
        assert_eq!(queued(), u64::MAX);
        hub.publish(&[write(6, 1)], Revision(7));
        assert_eq!(queued(), u64::MAX);
        let (late, _) = hub.watch("/a/".into(), Revision(1)).unwrap();
        let late = late.queued_revision().unwrap();
        assert_eq!(late.load(Ordering::Acquire), u64::MAX);
        hub.publish(&[], Revision(8));
        assert_eq!(queued(), 6, "the last write to the prefix");
    }

    #[tokio::test]
    async fn a_restart_ends_watches_and_takes_new_ones() {
        let hub = WatchHub::new(Revision(5));
        let (mut receiver, _) = hub.watch("/a/".into(), Revision(1)).unwrap();
        let error = StorageError::Compacted { compacted: Revision(8) };
        hub.restart(Revision(9), &error);
        assert_eq!(receiver.next_batch().await, Some(vec![StorageEvent::Error(error)]));
        assert_eq!(receiver.next_batch().await, None);
        let (mut receiver, published) = hub.watch("/a/".into(), Revision(9)).unwrap();
        assert_eq!(published, Revision(9));
        hub.publish(&[write(10, 1)], Revision(10));
        assert_eq!(receiver.next_batch().await, Some(vec![write(10, 1)]));
    }
}
