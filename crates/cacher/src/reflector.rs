//! The task that follows the store: list once, watch from there.
//!
//! ```text
//!   list ──► watch ──► batch ──► batch ─ … ─┐
//!    ▲         ▲                            │ the watch ends or fails
//!    │         └──── from the last event ◄──┤
//!    └──── when that is compacted ◄─────────┘
//! ```
//!
//! After a watch that ended the next one starts where the last event was, so watchers notice nothing. Only when the
//! store no longer has what happened since is everything listed anew, and the watchers end.

use crate::{CachedObject, Snapshot, event::Change, metrics, shared::Shared, snapshot::ObjectMap};
use pintle_storage::{EventKind, Revision, StorageError, StorageEvent, WatchReceiver, WatchRequest};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// So many events are decoded and published at once; other tasks run in between.
const CHUNK: usize = 256;

/// Runs until the store is closed. However it ends, what nobody follows any more must not be read as if it were
/// followed: the cacher stops.
pub(crate) async fn run(shared: Arc<Shared>) {
    let _stop = StopAtEnd(&shared);
    let mut backoff = Backoff::default();
    loop {
        match shared.list_from_storage(None).await {
            Ok(snapshot) => {
                tracing::debug!(
                    resource = %shared.config.resource, revision = %snapshot.revision(), objects = snapshot.len(),
                    "cacher initialized"
                );
                let mut reflector = Reflector::new(&shared, snapshot);
                if let StorageError::Closed = reflector.watch(&mut backoff).await {
                    break;
                }
            }
            Err(StorageError::Closed) => break,
            Err(error) => {
                tracing::error!(resource = %shared.config.resource, %error, "cannot list; trying again");
                backoff.wait().await;
            }
        }
    }
}

struct StopAtEnd<'a>(&'a Shared);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

struct Reflector<'a> {
    shared: &'a Shared,
    objects: ObjectMap,
    revision: Revision,
}

impl<'a> Reflector<'a> {
    fn new(shared: &'a Shared, snapshot: Snapshot) -> Reflector<'a> {
        let reflector =
            Reflector { shared, objects: snapshot.objects().clone(), revision: snapshot.revision() };
        shared.replace(snapshot);
        reflector
    }

    /// Follows the store for as long as it has what comes next. Returns [`StorageError::Closed`] or
    /// [`StorageError::Compacted`].
    async fn watch(&mut self, backoff: &mut Backoff) -> StorageError {
        loop {
            let ended = self.watch_once(backoff).await;
            self.shared.set_queued(None);
            let error = match ended {
                Ok(()) => None,
                Err(error @ (StorageError::Closed | StorageError::Compacted { .. })) => {
                    tracing::debug!(resource = %self.shared.config.resource, %error, "cannot go on watching");
                    return error;
                }
                Err(error) => Some(error),
            };
            tracing::warn!(
                resource = %self.shared.config.resource, revision = %self.revision,
                error = error.as_ref().map(tracing::field::display),
                "the storage watch ended; watching again"
            );
            backoff.wait().await;
        }
    }

    async fn watch_once(&mut self, backoff: &mut Backoff) -> Result<(), StorageError> {
        let storage = &self.shared.storage;
        let prefix = self.shared.config.prefix.to_string();
        let mut stream = storage.watch(WatchRequest { prefix, after: self.revision }).await?;
        let queued = stream.queued_revision();
        let is_known =
            queued.as_ref().is_some_and(|queued| queued.load(Ordering::Acquire) <= self.revision.0);
        self.shared.set_queued(queued);
        if !is_known {
            // Without it nobody would know how far the cache is until the next write to the resource.
            storage.request_progress().await?;
        }
        self.follow(stream.as_mut(), backoff).await
    }

    async fn follow(
        &mut self,
        stream: &mut dyn WatchReceiver,
        backoff: &mut Backoff,
    ) -> Result<(), StorageError> {
        while let Some(batch) = stream.next_batch().await {
            backoff.reset();
            let mut batch = batch.into_iter().peekable();
            while batch.peek().is_some() {
                self.apply(batch.by_ref().take(CHUNK))?;
                if batch.peek().is_some() {
                    tokio::task::yield_now().await;
                }
            }
        }
        Ok(())
    }

    /// Publishes some events; what precedes an error is published, too.
    fn apply(&mut self, events: impl Iterator<Item = StorageEvent>) -> Result<(), StorageError> {
        let mut changes = Vec::new();
        let mut failed = Ok(());
        for event in events {
            match event {
                StorageEvent::Write { kind, revision, kv } => {
                    metrics::add(&self.shared.metrics.events_received, 1);
                    let current = match kind {
                        EventKind::Create | EventKind::Update => self.shared.decode(&kv),
                        EventKind::Delete => None,
                    };
                    let previous = match &current {
                        Some(object) => self.objects.insert(kv.key, object.clone()),
                        None => self.objects.remove(kv.key.as_str()),
                    };
                    self.revision = self.revision.max(revision);
                    changes.extend(change(revision, current, previous));
                }
                StorageEvent::Progress(revision) => self.revision = self.revision.max(revision),
                StorageEvent::Error(error) => {
                    failed = Err(error);
                    break;
                }
            }
        }
        if changes.is_empty() {
            self.shared.advance(self.revision);
        } else {
            self.shared.apply(changes, Snapshot::new(self.objects.clone(), self.revision));
        }
        failed
    }
}

/// A change, unless there is nothing on either side: an object that never decoded was deleted.
pub(crate) fn change(
    revision: Revision,
    current: Option<Arc<CachedObject>>,
    previous: Option<Arc<CachedObject>>,
) -> Option<Change> {
    (current.is_some() || previous.is_some()).then_some(Change { revision, current, previous })
}

/// Waits longer from failure to failure.
struct Backoff {
    next: Duration,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(20);
    const LONGEST: Duration = Duration::from_secs(5);

    async fn wait(&mut self) {
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(Self::LONGEST);
    }

    fn reset(&mut self) {
        self.next = Self::FIRST;
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { next: Self::FIRST }
    }
}
