//! Batches of watch items, bounded in number and in bytes.

use crate::WatchItem;
use std::collections::VecDeque;

/// The largest total size of the objects in a batch, in bytes; a batch of one item may exceed it.
const BATCH_BYTES: usize = 256 << 10;

/// Items that are appended to a watcher's vector.
pub(crate) struct Batch<'a> {
    items: &'a mut Vec<WatchItem>,
    /// The number of items in the vector before this batch.
    before: usize,
    limit: usize,
    bytes: usize,
    /// The next item was too large.
    is_full: bool,
}

impl<'a> Batch<'a> {
    /// A batch that appends at most `limit` items to `items`.
    pub(crate) fn new(items: &'a mut Vec<WatchItem>, limit: usize) -> Batch<'a> {
        let before = items.len();
        Batch { items, before, limit, bytes: 0, is_full: false }
    }

    /// The number of items that were appended.
    pub(crate) fn len(&self) -> usize {
        self.items.len() - self.before
    }

    /// Whether the batch holds items and has no room for another one.
    pub(crate) fn is_full(&self) -> bool {
        self.len() > 0 && (self.is_full || self.len() >= self.limit)
    }

    /// Whether an item of this size fits; the first item always does.
    pub(crate) fn has_room(&mut self, bytes: usize) -> bool {
        self.is_full = self.bytes + bytes > BATCH_BYTES;
        !self.is_full()
    }

    /// Appends an item.
    pub(crate) fn push(&mut self, item: WatchItem) {
        self.bytes += item.bytes();
        self.items.push(item);
    }

    /// Moves at most `max` items from the front of a queue. Returns their size in bytes.
    pub(crate) fn fill(&mut self, queue: &mut VecDeque<WatchItem>, max: usize) -> usize {
        let before = self.bytes;
        let end = self.len().saturating_add(max);
        while self.len() < end
            && let Some(item) = queue.front()
            && self.has_room(item.bytes())
            && let Some(item) = queue.pop_front()
        {
            self.push(item);
        }
        self.bytes - before
    }

    /// Applies `judge` to the items after the first `len` of this batch; `judge` may remove some.
    pub(crate) fn judge(&mut self, len: usize, judge: impl FnOnce(&mut Vec<WatchItem>, usize)) {
        judge(self.items, self.before + len);
        let kept = self.items.get(self.before..).unwrap_or_default();
        self.bytes = kept.iter().map(WatchItem::bytes).sum();
    }
}
