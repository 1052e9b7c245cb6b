//! The receiving end of a watch.

use crate::WatchItem;
use std::task::{Context, Poll};

/// One client's watch. Dropping it ends the watch.
pub struct Watcher {}

impl Watcher {
    /// The next item; `None` when the watch is over because the watcher was too slow, the store's history had a gap,
    /// or the cacher was stopped. The client then starts again from the last revision it has seen.
    ///
    /// Cancel safe: a dropped call loses nothing.
    pub async fn next(&mut self) -> Option<WatchItem> {
        todo!()
    }

    /// Waits for at least one item and appends to `items` what is ready, at most `limit`. `false` when the watch is
    /// over.
    ///
    /// Cancel safe: a dropped call loses nothing, and what was appended was delivered.
    pub async fn next_batch(&mut self, limit: usize, items: &mut Vec<WatchItem>) -> bool {
        todo!()
    }

    /// [`Watcher::next_batch`] for those who poll: the number of items appended, 0 when the watch is over.
    pub fn poll_batch(
        &mut self,
        cx: &mut Context<'_>,
        limit: usize,
        items: &mut Vec<WatchItem>,
    ) -> Poll<usize> {
        todo!()
    }
}
