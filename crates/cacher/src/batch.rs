//! A batch of items for a watcher, bounded in number and in bytes.

use crate::WatchItem;
use std::collections::VecDeque;

/// How many bytes the objects of a batch have, but for those of a single item.
const BATCH_BYTES: usize = 256 << 10;

/// Items that are appended for a watcher.
pub(crate) struct Batch<'a> {
    items: &'a mut Vec<WatchItem>,
    /// How many there were before.
    before: usize,
    limit: usize,
    bytes: usize,
    /// The next item was too large.
    is_full: bool,
}

impl<'a> Batch<'a> {
    /// Appends at most `limit` items to what is there.
    pub(crate) fn new(items: &'a mut Vec<WatchItem>, limit: usize) -> Batch<'a> {
        let before = items.len();
        Batch { items, before, limit, bytes: 0, is_full: false }
    }

    /// How many items were appended.
    pub(crate) fn len(&self) -> usize {
        self.items.len() - self.before
    }

    /// Whether it holds items and has no room for another one.
    pub(crate) fn is_full(&self) -> bool {
        self.len() > 0 && (self.is_full || self.len() >= self.limit)
    }

    /// Whether an item of so many bytes has room; the first one always has.
    pub(crate) fn has_room(&mut self, bytes: usize) -> bool {
        self.is_full = self.bytes + bytes > BATCH_BYTES;
        !self.is_full()
    }

    /// Appends an item.
    pub(crate) fn push(&mut self, item: WatchItem) {
        self.bytes += item.bytes();
        self.items.push(item);
    }

    /// Moves at most `max` items from the front of a queue, and tells their bytes.
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

    /// Lets those that were appended after the first `len` be judged, which may take some of them out.
    pub(crate) fn judge(&mut self, len: usize, judge: impl FnOnce(&mut Vec<WatchItem>, usize)) {
        judge(self.items, self.before + len);
        let kept = self.items.get(self.before..).unwrap_or_default();
        self.bytes = kept.iter().map(WatchItem::bytes).sum();
    }
}
