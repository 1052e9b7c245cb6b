//! Runs timed work: sends bookmarks, trims the event log and the retained states.
//!
//! The task sleeps until the next work is due, and indefinitely when none is: an idle resource causes no wake-ups.

use crate::{Freshness, shared::Shared};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until, timeout};

/// The longest time for which bookmarks wait until the cache is fresh.
const PATIENCE: Duration = Duration::from_secs(1);

/// Runs until it is aborted.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        let now = Instant::now();
        let compacted = shared.storage.compacted_revision();
        let (retained, dropped) = shared.retained.lock().trim(compacted, now);
        drop(dropped);
        let (bookmarks, trim) = {
            let mut state = shared.state.lock();
            let trim = state.log.trim(now);
            shared.metrics.set_capacity(state.log.capacity());
            (state.bookmarks.next_due(), trim)
        };
        if bookmarks.is_some_and(|due| due <= now) {
            send_bookmarks(&shared).await;
            continue;
        }
        match bookmarks.into_iter().chain(trim).chain(retained).min() {
            None => shared.due_changed.notified().await,
            Some(due) => {
                tokio::select! {
                    () = sleep_until(due) => {}
                    () = shared.due_changed.notified() => {}
                }
            }
        }
    }
}

async fn send_bookmarks(shared: &Shared) {
    // Without writes the revision of the resource, and of its watchers, would grow old. If the store does not answer,
    // the bookmarks carry the last known revision.
    let fresh = timeout(PATIENCE, shared.snapshot_from_cache(Freshness::Consistent)).await;
    if let Ok(Ok(snapshot)) = fresh {
        shared.advance(snapshot.revision());
    }
    let now = Instant::now();
    let mut wakers = Vec::new();
    {
        let mut state = shared.state.lock();
        let revision = state.snapshot.revision();
        for target in state.bookmarks.pop_due(now) {
            wakers.extend(target.offer_bookmark(revision));
            state.bookmarks.insert(&target, now);
        }
    }
    shared.wake_watchers(wakers);
}
