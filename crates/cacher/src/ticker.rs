//! The task that does what is due: bookmarks, and trimming the event log.
//!
//! It sleeps until then, and for ever when nothing is due: an idle resource costs no wake-ups.

use crate::{Freshness, shared::Shared};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time::{Instant, sleep_until, timeout};

/// How long bookmarks wait for the cache to become fresh.
const PATIENCE: Duration = Duration::from_secs(1);

/// Runs until it is aborted.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        let now = Instant::now();
        let (bookmarks, trim) = {
            let mut state = shared.state.lock();
            let trim = state.log.trim(now);
            shared.metrics.capacity.store(state.log.capacity(), Ordering::Relaxed);
            (state.bookmarks.next_due(), trim)
        };
        if bookmarks.is_some_and(|due| due <= now) {
            send_bookmarks(&shared).await;
            continue;
        }
        match bookmarks.into_iter().chain(trim).min() {
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
    // A resource without writes gets old otherwise, and its watchers' revisions with it. If the store does not answer the
    // bookmarks say what is known.
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
