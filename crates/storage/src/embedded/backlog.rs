//! Holds the writes that are durable in the journal and not in the database yet.
//!
//! The apply thread soon applies them to the database. Until then reads find them here, so the delay is invisible:
//! revisions are contiguous, those up to [`Backlog::applied`] are in the database, and all later ones are here.

use super::batch::Batch;
use crate::{EventKind, Revision, StorageEvent};
use bytes::Bytes;
use std::{collections::VecDeque, sync::Arc};

pub(super) struct Backlog {
    applied: Revision,
    /// In revision order; the first one begins after `applied`.
    batches: VecDeque<Arc<Batch>>,
    bytes: u64,
    stuck: bool,
}

impl Backlog {
    /// An empty backlog over a database that has all writes up to `applied`.
    pub(super) fn new(applied: Revision) -> Backlog {
        Backlog { applied, batches: VecDeque::new(), bytes: 0, stuck: false }
    }

    /// The latest revision that is in the database.
    pub(super) fn applied(&self) -> Revision {
        self.applied
    }

    /// The size of keys and stored values, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the database had no room for the backlog. Writes are refused until it has.
    pub(super) fn stuck(&self) -> bool {
        self.stuck
    }

    pub(super) fn set_stuck(&mut self, stuck: bool) {
        self.stuck = stuck;
    }

    /// Appends the batch that follows the last one.
    pub(super) fn push(&mut self, batch: Arc<Batch>) {
        self.bytes += batch.bytes;
        self.batches.push_back(batch);
    }

    /// The oldest batches, up to about `bytes` bytes, at least one if there is any.
    pub(super) fn oldest(&self, bytes: u64) -> Vec<Arc<Batch>> {
        let mut room = bytes.max(1);
        let fits = |batch: &&Arc<Batch>| {
            let fits = room > 0;
            room = room.saturating_sub(batch.bytes);
            fits
        };
        self.batches.iter().take_while(fits).cloned().collect()
    }

    /// Drops the batches up to `applied`, which the database has now.
    pub(super) fn forget(&mut self, applied: Revision) {
        let forgotten = self.batches.partition_point(|batch| batch.revision <= applied);
        for batch in self.batches.drain(..forgotten) {
            self.bytes -= batch.bytes;
            self.applied = batch.revision;
        }
    }

    /// The value written at a revision; `None` when the database has it.
    pub(super) fn value(&self, revision: Revision) -> Option<&Bytes> {
        if revision <= self.applied {
            return None;
        }
        match self.after(Revision(revision.0.checked_sub(1)?)).next()? {
            StorageEvent::Write { kv, kind: EventKind::Create | EventKind::Update, .. } => {
                Some(kv.value.stored_form())
            }
            _ => None,
        }
    }

    /// The writes after a revision that are in the backlog, deletes without values.
    pub(super) fn after(&self, revision: Revision) -> impl Iterator<Item = &StorageEvent> {
        let first = self.batches.partition_point(|batch| batch.revision <= revision);
        let skipped = self.batches.get(first).map_or(0, |batch| revision.0.saturating_sub(batch.before.0));
        let events = self.batches.iter().skip(first).flat_map(|batch| &batch.events);
        events.skip(usize::try_from(skipped).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Key, KeyValue, ValueState};

    /// Creates with these revisions, which are also the values; revision 7 is a delete.
    fn batch(revisions: std::ops::RangeInclusive<u64>) -> Arc<Batch> {
        let before = Revision(revisions.start() - 1);
        let write = |revision: u64| {
            let kind = if revision == 7 { EventKind::Delete } else { EventKind::Create };
            let kv = KeyValue {
                key: Key::new(format!("/r/{revision}")),
                value: revision.to_string().into(),
                state: ValueState::Current,
                create_revision: Revision(revision),
                mod_revision: Revision(revision),
            };
            StorageEvent::Write { kind, revision: Revision(revision), kv }
        };
        Arc::new(Batch::of(before, revisions.map(write).collect()))
    }

    fn after(backlog: &Backlog, revision: u64) -> Vec<u64> {
        let revision_of = |event: &StorageEvent| match event {
            StorageEvent::Write { revision, .. } => revision.0,
            other => panic!("{other:?}"),
        };
        backlog.after(Revision(revision)).map(revision_of).collect()
    }

    #[test]
    fn what_the_database_lacks_is_found_by_revision() {
        let mut backlog = Backlog::new(Revision(4));
        assert!(after(&backlog, 0).is_empty());
        for revisions in [5..=5, 6..=8, 9..=10] {
            backlog.push(batch(revisions));
        }
        let values = |backlog: &Backlog| {
            let value =
                |at| backlog.value(Revision(at)).map(|value| String::from_utf8_lossy(value).into_owned());
            (0..12).filter_map(value).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(values(&backlog), "5 6 8 9 10", "a delete has no value");
        assert_eq!(after(&backlog, 0), [5, 6, 7, 8, 9, 10]);
        assert_eq!(after(&backlog, 6), [7, 8, 9, 10]);
        assert_eq!(after(&backlog, 8), [9, 10]);
        assert!(after(&backlog, 10).is_empty());

        assert_eq!(backlog.bytes(), 6);
        let oldest = |bytes| backlog.oldest(bytes).iter().map(|batch| batch.revision.0).collect::<Vec<_>>();
        assert_eq!(
            (oldest(0), oldest(1), oldest(2), oldest(9)),
            (vec![5], vec![5], vec![5, 8], vec![5, 8, 10])
        );

        backlog.forget(Revision(8));
        assert_eq!((backlog.applied(), backlog.bytes()), (Revision(8), 2));
        assert_eq!(values(&backlog), "9 10");
        assert_eq!(after(&backlog, 0), [9, 10]);
        backlog.forget(Revision(10));
        assert_eq!((backlog.applied(), backlog.bytes()), (Revision(10), 0));
    }
}
