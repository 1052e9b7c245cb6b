//! Keeps the recent changes of a resource, so that watches can resume and past states can be rebuilt.
//!
//! The log is a ring whose capacity varies between two bounds, as in kube-apiserver's watch cache: the capacity
//! doubles when the log is full and its oldest event is younger than the history window, and halves when even the
//! newest quarter is older. In addition, the bytes of objects that only the log keeps in memory are bounded, and the
//! ticker trims a log that receives no events, so that the memory of a burst is released. Older events have their objects
//! packed, so that the bytes reach back further. Invariants:
//! - every change after [`EventLog::start`] is in the log, in the order of the store;
//! - a [`Position`] names one change for as long as it is in the log, and later changes never get the position of one
//!   that was dropped, so a reader that fell behind detects the gap. Changes that are read back from the store have the
//!   positions that they had.
//!
//! Readers keep positions and not revisions, because one revision may have several changes: etcd deletes all keys of
//! an expired lease at once.

use crate::{CachedObject, CacherConfig, byte_budget::BudgetedBytes, event::Change, object_map::ObjectMap};
use pintle_storage::{Key, Revision};
use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;

/// The number of changes since a state up to which the event log is read for it. A page is mostly one of the present
/// state, or a few writes happened while it was selected.
const MAX_CHANGES_SINCE: usize = 1024;
/// The number of changes between two kept states, from which past states are rebuilt.
const CHECKPOINT_INTERVAL: u64 = 128;

/// The bytes of an object and its entry beside the encodings.
const OBJECT_BYTES: usize = 384;

/// The position of a change in the log.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position(u64);

impl Position {
    /// The number of changes from the first of a log to this position; `None` when those were dropped.
    pub(crate) fn after(self, first: Position) -> Option<usize> {
        Some(usize::try_from(self.0.checked_sub(first.0)?).unwrap_or(usize::MAX))
    }

    /// At most `limit` of the changes that begin at this position, with at most `max_bytes` bytes of objects in total, and
    /// the position after them. A first change that is larger is still read.
    pub(crate) fn read<'a>(
        self,
        rest: impl Iterator<Item = &'a Change>,
        limit: usize,
        max_bytes: usize,
    ) -> (Vec<Change>, Position) {
        let mut bytes = 0_usize;
        let mut changes = Vec::new();
        for change in rest.take(limit) {
            bytes = bytes.saturating_add(change.bytes());
            if bytes > max_bytes && !changes.is_empty() {
                break;
            }
            changes.push(change.clone());
        }
        let next = Position(self.0 + changes.len() as u64);
        (changes, next)
    }
}

#[derive(Debug)]
pub(crate) struct EventLog {
    entries: VecDeque<Entry>,
    /// The position of the first entry.
    first: u64,
    start: Revision,
    capacity: usize,
    min_capacity: usize,
    max_capacity: usize,
    max_bytes: usize,
    /// The memory of replaced and deleted objects, in bytes: that of the log besides the snapshot.
    bytes: BudgetedBytes,
    /// The position of the first entry whose object was not given out to be packed.
    unpacked: u64,
    /// The bytes of the entries from that position on.
    unpacked_bytes: usize,
    history: Duration,
    /// For some positions within the log, the state before the change at that position.
    checkpoints: VecDeque<(u64, ObjectMap)>,
}

#[derive(Debug)]
struct Entry {
    change: Change,
    at: Instant,
    /// The memory of the object before the change, as it was last counted.
    bytes: usize,
}

impl Entry {
    fn new(change: Change, at: Instant) -> Entry {
        let bytes = change.previous.as_ref().map_or(0, |previous| bytes_of(previous));
        Entry { change, at, bytes }
    }
}

/// The memory of an object, with that beside its encodings once they are small.
fn bytes_of(object: &CachedObject) -> usize {
    match object.is_packed() {
        true => (object.memory() + OBJECT_BYTES).min(object.size()),
        false => object.memory(),
    }
}

/// A replaced object of the log that is to be packed.
pub(crate) struct Packable {
    at: u64,
    object: Arc<CachedObject>,
}

impl Packable {
    /// Packs the object. Call it without a lock: it takes time in proportion to the object's size.
    pub(crate) fn pack(&self) {
        self.object.pack();
    }
}

impl EventLog {
    pub(crate) fn new(config: &CacherConfig) -> EventLog {
        let min_capacity = config.log_capacity_min.max(1);
        EventLog {
            entries: VecDeque::new(),
            // Half of the range, because history read from the store is prepended.
            first: 1 << 63,
            start: Revision(0),
            capacity: min_capacity,
            min_capacity,
            max_capacity: config.log_capacity_max.max(min_capacity),
            max_bytes: config.log_bytes_max,
            bytes: BudgetedBytes::new(config.log_budget.clone()),
            unpacked: 1 << 63,
            unpacked_bytes: 0,
            history: config.history,
            checkpoints: VecDeque::new(),
        }
    }

    /// Every change after this revision is in the log.
    pub(crate) fn start(&self) -> Revision {
        self.start
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// The position of the next change to come.
    pub(crate) fn end(&self) -> Position {
        Position(self.end_index())
    }

    fn end_index(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Drops all changes: the log begins again after `start`.
    pub(crate) fn reset(&mut self, start: Revision) {
        // One position is skipped, so that a reader at the end detects the gap, too.
        self.first = self.end_index() + 1;
        self.entries = VecDeque::new();
        self.checkpoints.clear();
        self.bytes.remove(self.bytes.get());
        (self.unpacked, self.unpacked_bytes) = (self.first, 0);
        self.capacity = self.min_capacity;
        self.start = start;
    }

    pub(crate) fn push(&mut self, change: Change, now: Instant) {
        let entry = Entry::new(change, now);
        self.bytes.add(entry.bytes);
        self.unpacked_bytes += entry.bytes;
        self.make_room(now);
        self.entries.push_back(entry);
        while (self.bytes.get() > self.max_bytes || self.bytes.is_too_much()) && self.lose_oldest() {}
        self.forget_checkpoints();
    }

    /// At most `limit` of the oldest objects that are not packed, if the log has more bytes of such objects than a quarter
    /// of its bound. The caller packs them, and calls [`EventLog::note_packed`].
    pub(crate) fn take_packable(&mut self, limit: usize) -> Vec<Packable> {
        let mut taken = Vec::new();
        while self.unpacked_bytes > self.max_bytes / 4 && taken.len() < limit {
            let index = usize::try_from(self.unpacked - self.first).unwrap_or(usize::MAX);
            let Some(entry) = self.entries.get(index) else { break };
            let object = entry.change.previous.clone();
            taken.extend(object.map(|object| Packable { at: self.unpacked, object }));
            self.unpacked_bytes -= entry.bytes;
            self.unpacked += 1;
        }
        taken
    }

    /// Counts the memory of objects that were packed.
    pub(crate) fn note_packed(&mut self, packed: &[Packable]) {
        for Packable { at, object } in packed {
            let Some(index) = at.checked_sub(self.first).and_then(|index| usize::try_from(index).ok()) else {
                continue;
            };
            if let Some(entry) = self.entries.get_mut(index)
                && entry.change.previous.as_ref().is_some_and(|previous| Arc::ptr_eq(previous, object))
            {
                let bytes = bytes_of(object).min(entry.bytes);
                self.bytes.remove(entry.bytes - bytes);
                entry.bytes = bytes;
            }
        }
    }

    fn make_room(&mut self, now: Instant) {
        if self.entries.len() < self.capacity {
            return;
        }
        let newest_quarter = self.entries.len() - self.capacity / 4;
        if !self.is_old(self.entries.front(), now) {
            self.capacity = (self.capacity * 2).min(self.max_capacity);
        } else if self.is_old(self.entries.get(newest_quarter), now) {
            self.capacity = (self.capacity / 2).max(self.min_capacity);
        }
        while self.entries.len() >= self.capacity && self.lose_oldest() {}
        self.release_memory();
    }

    fn is_old(&self, entry: Option<&Entry>, now: Instant) -> bool {
        entry.is_some_and(|entry| now.saturating_duration_since(entry.at) >= self.history)
    }

    fn lose_oldest(&mut self) -> bool {
        let Some(lost) = self.entries.pop_front() else { return false };
        self.bytes.remove(lost.bytes);
        if self.unpacked <= self.first {
            self.unpacked = self.first + 1;
            self.unpacked_bytes -= lost.bytes;
        }
        self.start = lost.change.revision;
        self.first += 1;
        true
    }

    fn forget_checkpoints(&mut self) {
        while self.checkpoints.front().is_some_and(|(position, _)| *position < self.first) {
            self.checkpoints.pop_front();
        }
    }

    fn release_memory(&mut self) {
        if self.entries.capacity() > self.capacity * 4 {
            self.entries.shrink_to(self.capacity * 2);
        }
    }

    /// Whether there are more changes than the minimum that is kept regardless of age.
    pub(crate) fn is_trimmable(&self) -> bool {
        self.entries.len() > self.min_capacity
    }

    /// Drops changes older than the history window, down to the minimum capacity. Returns the time of the next trim;
    /// `None` when only the minimum is left.
    pub(crate) fn trim(&mut self, now: Instant) -> Option<Instant> {
        while self.is_trimmable() && self.is_old(self.entries.front(), now) && self.lose_oldest() {}
        self.forget_checkpoints();
        self.capacity = self.capacity.min(self.entries.len().next_power_of_two()).max(self.min_capacity);
        self.release_memory();
        let oldest = self.entries.front().filter(|_| self.is_trimmable())?;
        // At most eight times per history window, not once per event.
        Some((oldest.at + self.history).max(now + self.history / 8))
    }

    /// Prepends the changes after `start` up to the log's present start. `false` when the log would exceed its
    /// bounds.
    pub(crate) fn prepend(&mut self, changes: Vec<Change>, start: Revision, now: Instant) -> bool {
        // Of the last revision that lost a change, the log may have others.
        let of_start = self.entries.iter().map(|entry| &entry.change);
        let of_start = of_start.take_while(|change| change.revision == self.start);
        let kept: HashSet<Key> = of_start.filter_map(|change| Some(change.key()?.clone())).collect();
        let is_kept = |change: &Change| {
            change.revision == self.start && change.key().is_some_and(|key| kept.contains(key))
        };
        let lost = changes.into_iter().filter(|change| !is_kept(change));
        let entries: Vec<_> = lost.map(|change| Entry::new(change, now)).collect();
        let added = entries.iter().map(|entry| entry.bytes).sum::<usize>();
        let len = self.entries.len() + entries.len();
        if self.bytes.get() + added > self.max_bytes || len > self.max_capacity {
            return false;
        }
        self.bytes.add(added);
        self.first -= entries.len() as u64;
        for entry in entries.into_iter().rev() {
            self.entries.push_front(entry);
        }
        self.capacity = self.capacity.max(len.next_power_of_two()).min(self.max_capacity);
        self.start = start;
        true
    }

    /// Reports that `objects` is the state after all changes so far; the log keeps some of these states.
    pub(crate) fn note_state(&mut self, objects: &ObjectMap) {
        let end = self.end_index();
        let last = self.checkpoints.back().map_or(self.first, |(position, _)| *position);
        if end - last >= CHECKPOINT_INTERVAL {
            self.checkpoints.push_back((end, objects.clone()));
        }
    }

    /// The position of the first change after `revision`; `None` when some of those changes were dropped.
    pub(crate) fn position_after(&self, revision: Revision) -> Option<Position> {
        if revision < self.start {
            return None;
        }
        let skipped = self.entries.partition_point(|entry| entry.change.revision <= revision);
        Some(Position(self.first + skipped as u64))
    }

    /// All changes after `revision`; `None` when some of them were dropped, or they are not a few
    /// ([`MAX_CHANGES_SINCE`]).
    pub(crate) fn few_after(&self, revision: Revision) -> Option<Vec<Change>> {
        let (changes, _) = self.read(self.position_after(revision)?, MAX_CHANGES_SINCE + 1)?;
        (changes.len() <= MAX_CHANGES_SINCE).then_some(changes)
    }

    /// At most `limit` changes from `from` on, and the position after them; `None` when the change at `from` was
    /// dropped.
    pub(crate) fn read(&self, from: Position, limit: usize) -> Option<(Vec<Change>, Position)> {
        self.read_bytes(from, limit, usize::MAX)
    }

    /// As [`EventLog::read`], with at most `max_bytes` bytes of objects in total; a first change that is larger is
    /// still read.
    pub(crate) fn read_bytes(
        &self,
        from: Position,
        limit: usize,
        max_bytes: usize,
    ) -> Option<(Vec<Change>, Position)> {
        let skipped = from.after(Position(self.first))?;
        let rest = self.entries.iter().skip(skipped).map(|entry| &entry.change);
        Some(from.read(rest, limit, max_bytes))
    }

    /// A copy of all changes, and the position of the first, for readers that outlive the log.
    pub(crate) fn all(&self) -> (Position, Vec<Change>) {
        (Position(self.first), self.entries.iter().map(|entry| entry.change.clone()).collect())
    }

    /// The data to rebuild the state at `revision`: a later state, and the changes to undo in it. `newest` is the
    /// state after all changes. `None` when the log does not reach back to `revision`.
    pub(crate) fn past(&self, revision: Revision, newest: &ObjectMap) -> Option<Past> {
        let Position(from) = self.position_after(revision)?;
        let at = self.checkpoints.partition_point(|(position, _)| *position < from);
        let (to, later) = match self.checkpoints.get(at) {
            Some((position, objects)) => (*position, objects),
            None => (self.end_index(), newest),
        };
        let limit = usize::try_from(to - from).unwrap_or(usize::MAX);
        let (changes, _) = self.read(Position(from), limit)?;
        Some(Past { later: later.clone(), changes })
    }
}

/// A past state that is not rebuilt yet; [`Past::rebuild`] runs without the lock.
pub(crate) struct Past {
    later: ObjectMap,
    changes: Vec<Change>,
}

impl Past {
    pub(crate) fn rebuild(self) -> ObjectMap {
        let mut objects = self.later;
        for change in self.changes.iter().rev() {
            match (&change.previous, &change.current) {
                (Some(previous), _) => {
                    objects.insert(previous.clone());
                }
                (None, Some(current)) => {
                    objects.remove(current.key().as_str());
                }
                (None, None) => {}
            }
        }
        objects
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ByteBudget,
        testing::{config, object, object_of},
    };

    const SHARE: usize = 256 << 10;

    fn change(revision: u64) -> Change {
        Change { revision: Revision(revision), current: Some(object("/p/a", revision)), previous: None }
    }

    fn new(log_capacity_min: usize, log_capacity_max: usize) -> EventLog {
        let log_bytes_max = log_capacity_max * 10;
        EventLog::new(&CacherConfig { log_capacity_min, log_capacity_max, log_bytes_max, ..config() })
    }

    fn log(revisions: impl IntoIterator<Item = u64>) -> EventLog {
        let mut log = new(4, 16);
        log.reset(Revision(10));
        for revision in revisions {
            log.push(change(revision), Instant::now());
        }
        log
    }

    fn revisions_after(log: &EventLog, revision: u64) -> Option<Vec<u64>> {
        let position = log.position_after(Revision(revision))?;
        let (changes, next) = log.read(position, 100).unwrap();
        assert_eq!(next, log.end());
        Some(changes.iter().map(|change| change.revision.0).collect())
    }

    #[test]
    fn a_watch_resumes_after_any_revision_from_the_start_on() {
        let log = log([12, 12, 14]);
        let rows: &[(u64, Option<&[u64]>)] = &[
            (9, None),
            (10, Some(&[12, 12, 14])),
            (11, Some(&[12, 12, 14])),
            (12, Some(&[14])),
            (13, Some(&[14])),
            (14, Some(&[])),
            (99, Some(&[])),
        ];
        for (after, expected) in rows {
            assert_eq!(revisions_after(&log, *after).as_deref(), *expected, "after {after}");
        }
    }

    #[test]
    fn changes_of_a_revision_that_was_dropped_in_part_are_read_back_once() {
        let of_key = |revision: u64, key: &str| Change {
            revision: Revision(revision),
            current: None,
            previous: Some(object(key, 1)),
        };
        let mut log = new(2, 16);
        log.reset(Revision(10));
        log.history = Duration::ZERO;
        let keys = ["/p/a", "/p/b", "/p/c"];
        keys.iter().for_each(|key| log.push(of_key(12, key), Instant::now()));
        assert_eq!((log.start(), log.entries.len()), (Revision(12), 2), "the first is dropped");
        let read: Vec<_> = [of_key(11, "/p/a")].into_iter().chain(keys.map(|key| of_key(12, key))).collect();
        assert!(log.prepend(read, Revision(10), Instant::now()));
        let (changes, next) = log.read(log.position_after(Revision(10)).unwrap(), 100).unwrap();
        let keys: Vec<_> =
            changes.iter().map(|change| (change.revision.0, change.key().unwrap().as_str())).collect();
        assert_eq!(keys, [(11, "/p/a"), (12, "/p/a"), (12, "/p/b"), (12, "/p/c")]);
        assert_eq!(next, log.end());
    }

    #[test]
    fn older_objects_are_packed_and_reach_back_further() {
        const SIZE: usize = 1000;
        let mut log = EventLog::new(&CacherConfig { log_bytes_max: 10 * SIZE, ..config() });
        log.reset(Revision(0));
        let push = |log: &mut EventLog, revision: u64| {
            let previous = Some(object_of("/p/a", revision, &"x".repeat(SIZE - 3)));
            log.push(Change { revision: Revision(revision), current: None, previous }, Instant::now());
            let packable = log.take_packable(2);
            packable.iter().for_each(Packable::pack);
            log.note_packed(&packable);
        };
        for revision in 11..=30 {
            push(&mut log, revision);
        }
        let (changes, _) = log.read(log.position_after(Revision(0)).unwrap(), 100).unwrap();
        let is_packed = |change: &Change| change.previous.as_ref().unwrap().is_packed();
        assert_eq!(
            changes.iter().map(is_packed).collect::<Vec<_>>(),
            [vec![true; 18], vec![false; 2]].concat()
        );
        let counted: usize = changes.iter().map(|change| bytes_of(change.previous.as_ref().unwrap())).sum();
        assert_eq!(log.bytes.get(), counted);
        // Without its packed objects it would have lost most of them.
        assert!(counted < 10 * SIZE && changes.len() == 20);
        while log.lose_oldest() {}
        assert_eq!((log.bytes.get(), log.unpacked_bytes), (0, 0));
        push(&mut log, 31);
        assert_eq!((log.bytes.get(), log.unpacked_bytes), (SIZE, SIZE));
        log.reset(Revision(40));
        push(&mut log, 41);
        assert_eq!((log.bytes.get(), log.unpacked_bytes), (SIZE, SIZE));
    }

    #[test]
    fn the_capacity_follows_the_rate_of_events() {
        // (events, seconds between them, capacity, kept)
        let rows =
            [(4, 0, 4, 4), (5, 0, 8, 5), (100, 0, 16, 16), (100, 1000, 4, 4), (17, 75, 4, 4), (16, 30, 4, 4)];
        for (events, seconds, capacity, kept) in rows {
            let mut log = log([]);
            let mut now = Instant::now();
            for revision in 11..11 + events {
                log.push(change(revision), now);
                now += Duration::from_secs(seconds);
            }
            assert_eq!(
                (log.capacity(), log.entries.len()),
                (capacity, kept),
                "{events} events every {seconds} s"
            );
            // The log's start is exact.
            assert_eq!(log.start(), Revision(10 + events - kept as u64));
            assert_eq!(revisions_after(&log, log.start().0).unwrap().len(), kept);
            assert_eq!(revisions_after(&log, log.start().0 - 1), None);
        }
    }

    #[test]
    fn a_log_that_grew_shrinks_when_events_become_rare() {
        let mut log = log(11..100);
        assert_eq!(log.capacity(), 16);
        let mut now = Instant::now();
        for revision in 100..140 {
            now += Duration::from_secs(100);
            log.push(change(revision), now);
        }
        assert_eq!((log.capacity(), log.entries.len()), (4, 4));
    }

    #[test]
    fn a_reader_from_before_a_reset_notices() {
        let mut log = log([11, 12]);
        let end = log.end();
        let middle = log.position_after(Revision(11)).unwrap();
        log.reset(Revision(20));
        assert!(log.read(end, 10).is_none());
        assert!(log.read(middle, 10).is_none());
        assert_eq!(revisions_after(&log, 20), Some(vec![]));
        assert_eq!(revisions_after(&log, 19), None);
    }

    #[test]
    fn history_from_the_store_goes_before_what_is_there() {
        let mut log = log([11, 12]);
        let middle = log.position_after(Revision(11)).unwrap();
        assert!(log.prepend(vec![change(7), change(9)], Revision(6), Instant::now()));
        assert_eq!(revisions_after(&log, 6), Some(vec![7, 9, 11, 12]));
        assert_eq!(revisions_after(&log, 5), None);
        let (changes, _) = log.read(middle, 10).unwrap();
        assert_eq!(changes[0].revision, Revision(12));
        assert!(!log.prepend((0..13).map(change).collect(), Revision(0), Instant::now()));
        assert!(log.prepend((0..12).map(change).collect(), Revision(0), Instant::now()));
    }

    #[test]
    fn a_quiet_log_is_trimmed_by_the_clock() {
        let mut log = log([]);
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        for revision in 11..21 {
            log.push(change(revision), after(revision));
        }
        assert_eq!(log.trim(after(80)), Some(after(86) + log.history / 8 - Duration::from_secs(6)));
        assert_eq!((log.entries.len(), log.start()), (10, Revision(10)));
        assert!(log.trim(after(88)).is_some());
        assert_eq!((log.entries.len(), log.start(), log.capacity()), (7, Revision(13), 8));
        assert_eq!(log.trim(after(1000)), None);
        assert_eq!((log.entries.len(), log.start(), log.capacity()), (4, Revision(16), 4));
        assert_eq!(revisions_after(&log, 16), Some(vec![17, 18, 19, 20]));
    }

    #[test]
    fn the_bytes_of_what_was_replaced_are_bounded() {
        let mut log = new(100, 100);
        log.reset(Revision(10));
        let mut previous = None;
        for revision in 11..61 {
            let current = Some(object_of("/p/a", revision, &"x".repeat(97)));
            log.push(
                Change { revision: Revision(revision), current: current.clone(), previous },
                Instant::now(),
            );
            previous = current;
        }
        // Each object has 100 bytes, with its revision.
        assert_eq!((log.bytes.get(), log.entries.len(), log.start()), (1000, 10, Revision(50)));
        assert_eq!(log.bytes.get(), log.entries.iter().map(|entry| entry.bytes).sum::<usize>());
        let deleted = Change { revision: Revision(49), current: None, previous };
        assert!(!log.prepend(vec![deleted.clone()], Revision(48), Instant::now()));
        let huge = object_of("/p/a", 61, &"x".repeat(5000));
        log.push(Change { revision: Revision(62), current: None, previous: Some(huge) }, Instant::now());
        assert_eq!((log.bytes.get(), log.entries.len(), log.start()), (0, 0, Revision(62)));
        assert!(log.prepend(vec![deleted], Revision(48), Instant::now()));
    }

    #[test]
    fn every_past_state_is_rebuilt() {
        let mut log = new(1000, 1000);
        log.reset(Revision(10));
        let mut objects = ObjectMap::default();
        let mut states = vec![(Revision(10), objects.clone())];
        for revision in 11..700_u64 {
            let key = format!("/p/{}", revision * 7 % 13);
            let previous = objects.get(key.as_str()).cloned();
            let current = (revision % 5 != 0 || previous.is_none()).then(|| object(&key, revision));
            match &current {
                Some(current) => objects.insert(current.clone()),
                None => objects.remove(key.as_str()),
            };
            log.push(Change { revision: Revision(revision), current, previous }, Instant::now());
            log.note_state(&objects);
            states.push((Revision(revision), objects.clone()));
        }
        assert!(log.checkpoints.len() >= 4);
        for (revision, expected) in states {
            let rebuilt = log.past(revision, &objects).unwrap().rebuild();
            let revisions = |objects: &ObjectMap| {
                objects.by_key().iter().map(|object| object.revision()).collect::<Vec<_>>()
            };
            assert_eq!(revisions(&rebuilt), revisions(&expected), "at {revision}");
        }
        assert!(log.past(Revision(9), &objects).is_none());
    }

    #[test]
    fn all_logs_together_keep_no_more_than_their_budget() {
        let budget = ByteBudget::new(4 * SHARE, SHARE);
        let text = "x".repeat(SHARE / 8);
        let mut logs: Vec<EventLog> =
            (0..6).map(|_| EventLog::new(&CacherConfig { log_budget: budget.clone(), ..config() })).collect();
        for revision in 1..40 {
            for log in &mut logs {
                let previous = Some(object_of("/p/a", revision, &text));
                log.push(Change { revision: Revision(revision), current: None, previous }, Instant::now());
            }
        }
        let used = budget.used();
        // Each log may exceed its share by one object.
        assert!(used <= 6 * (SHARE + SHARE / 4), "{used}");
        assert!(logs.iter().all(|log| log.entries.len() > 4));
        drop(logs);
        assert_eq!(budget.used(), 0);
    }
}
