//! A batch of decided writes: their rows and their events.

use super::{
    row::{Entry, Inserts},
    value::StoredValue,
};
use crate::{EventKind, Payload, Revision, StorageEvent};

/// The effects of a batch, in revision order.
pub(super) struct Batch {
    /// The revision before the batch; `revision` is that of its last write.
    pub(super) before: Revision,
    pub(super) revision: Revision,
    pub(super) rows: Vec<Row>,
    pub(super) events: Vec<StorageEvent>,
    /// The size of keys and stored values, in bytes.
    pub(super) bytes: u64,
}

/// A decided write.
pub(super) struct Row {
    pub(super) entry: Entry,
    pub(super) checksum: i64,
    pub(super) stored: StoredValue,
}

impl Batch {
    /// An empty batch after `revision`.
    pub(super) fn new(revision: Revision) -> Batch {
        Batch { before: revision, revision, rows: Vec::new(), events: Vec::new(), bytes: 0 }
    }

    /// A batch that consists of events only, counted as one byte each.
    #[cfg(test)]
    pub(super) fn of(before: Revision, events: Vec<StorageEvent>) -> Batch {
        let bytes = events.len() as u64;
        Batch { revision: Revision(before.0 + bytes), events, bytes, ..Batch::new(before) }
    }

    /// Drops the contents of its payloads that only the open watches need, when they have been published. The value of a
    /// delete is that of an earlier row, and its stored form may not be known: history reads it there.
    pub(super) fn keep_for_history(&mut self) {
        for event in &mut self.events {
            match event {
                StorageEvent::Write { kind: EventKind::Delete, kv, .. } => kv.value = Payload::default(),
                StorageEvent::Write { kv, .. } => {
                    kv.value.keep_stored_form();
                    kv.value.packed = None;
                }
                StorageEvent::Progress(_) | StorageEvent::Error(_) => {}
            }
        }
    }

    /// Inserts the rows, in the caller's transaction.
    pub(super) fn insert(&self, inserts: &mut Inserts<'_>) -> rusqlite::Result<()> {
        self.rows
            .iter()
            .try_for_each(|Row { entry, checksum, stored }| inserts.insert(entry, *checksum, stored.bytes()))
    }
}
