//! Retains the states that continue tokens were issued for, so that later pages cost what they return.
//!
//! A retained state shares with the present one all objects that did not change since. Its other objects are
//! counted: each object that is replaced or deleted is counted once, with the newest state that has it. Because
//! the oldest state is always dropped first, this is exactly what the drop of a state frees.
//!
//! ```text
//!   states retained at      R1            R2            R3           now
//!   object x written at  ▲  ┆             ┆     ▲ replaced
//!                        └──── kept by R1 and R2, counted with R2 ──▶
//! ```
//!
//! Nobody needs a retained state: pages of states that were dropped are read from the store.

use crate::{ByteBudget, Snapshot, byte_budget::BudgetedBytes, event::Change};
use pintle_storage::Revision;
use std::{collections::VecDeque, time::Duration};
use tokio::time::Instant;

/// The greatest number of retained states of a resource.
const MAX_STATES: usize = 64;
/// The bytes of a state beside its objects.
const STATE_BYTES: usize = 4096;
/// The bytes of the nodes of the persistent maps that a change replaces. The first changes after a state replace most.
pub(crate) const CHANGE_BYTES: usize = 4096;
/// The bytes of all nodes, for each object.
pub(crate) const ENTRY_BYTES: usize = 64;

/// The retained states of a resource, in the order of their revisions.
#[derive(Debug)]
pub(crate) struct RetainedStates {
    states: VecDeque<State>,
    /// The state after all changes that were noted.
    present: Snapshot,
    bytes: BudgetedBytes,
    max_bytes: usize,
    max_age: Duration,
}

#[derive(Debug)]
struct State {
    snapshot: Snapshot,
    /// The last revision that it was retained for; the resource did not change between the snapshot's and this one.
    last: Revision,
    /// The time at which it was last retained.
    at: Instant,
    /// The bytes of the objects that are counted with this state.
    object_bytes: usize,
    /// The number of changes between this state and the next one.
    changes: usize,
}

impl State {
    fn new(snapshot: Snapshot, now: Instant) -> State {
        let last = snapshot.revision();
        State { snapshot, last, at: now, object_bytes: 0, changes: 0 }
    }

    fn covers(&self, revision: Revision) -> bool {
        self.snapshot.revision() <= revision && revision <= self.last
    }

    /// The bytes that the drop of the state frees.
    fn bytes(&self) -> usize {
        let nodes = (self.changes * CHANGE_BYTES).min(self.snapshot.len() * ENTRY_BYTES);
        STATE_BYTES + nodes + self.object_bytes
    }

    fn note(&mut self, change: &Change) {
        self.changes += 1;
        self.object_bytes += change.bytes_of(self.snapshot.revision());
    }
}

/// States that are retained no longer. They are dropped without a lock, because that may take long.
pub(crate) type Dropped = Vec<Snapshot>;

impl RetainedStates {
    pub(crate) fn new(max_bytes: usize, max_age: Duration, budget: ByteBudget) -> RetainedStates {
        RetainedStates {
            states: VecDeque::new(),
            present: Snapshot::default(),
            bytes: BudgetedBytes::new(budget),
            max_bytes,
            max_age,
        }
    }

    /// The state at a revision that it was retained for.
    pub(crate) fn get(&self, revision: Revision) -> Option<Snapshot> {
        let at = self.states.partition_point(|state| state.snapshot.revision() <= revision);
        let state = self.states.get(at.checked_sub(1)?).filter(|state| state.covers(revision))?;
        Some(state.snapshot.clone().at_least(revision))
    }

    /// Retains a state if it is the present one, or retained already. `false` for any other.
    pub(crate) fn retain(&mut self, snapshot: &Snapshot, now: Instant) -> (bool, Dropped) {
        let revision = snapshot.revision();
        let at = self.states.partition_point(|state| state.snapshot.revision() <= revision);
        if let Some(state) = at.checked_sub(1).and_then(|at| self.states.get_mut(at))
            && (state.covers(revision) || state.snapshot.is_same_state(snapshot))
        {
            state.last = state.last.max(revision);
            state.at = now;
            return (true, Vec::new());
        }
        if let Some(state) = self.states.get_mut(at)
            && state.snapshot.is_same_state(snapshot)
        {
            // Retained for a later revision first.
            state.snapshot = snapshot.clone();
            state.at = now;
            return (true, Vec::new());
        }
        if !self.present.is_same_state(snapshot) {
            return (false, Vec::new());
        }
        self.states.push_back(State::new(snapshot.clone(), now));
        self.bytes.add(STATE_BYTES);
        (true, self.drop_excess())
    }

    /// The number of retained states.
    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// Retains a past state. `since` are all changes after it. Nothing changes meanwhile.
    pub(crate) fn retain_past(&mut self, snapshot: &Snapshot, since: &[Change], now: Instant) -> Dropped {
        let (is_retained, mut dropped) = self.retain(snapshot, now);
        if is_retained {
            return dropped;
        }
        let revision = snapshot.revision();
        let at = self.states.partition_point(|state| state.snapshot.revision() <= revision);
        let next = self.states.get(at).map(|next| next.snapshot.revision());
        let mut state = State::new(snapshot.clone(), now);
        let mut before = at.checked_sub(1).and_then(|at| self.states.get_mut(at));
        let counted = before.as_ref().map_or(0, |before| before.bytes());
        for change in since.iter().filter(|change| next.is_none_or(|next| change.revision <= next)) {
            state.note(change);
            // It was counted with the state before, which does not free it any more.
            if let Some(before) = &mut before {
                before.changes = before.changes.saturating_sub(1);
                before.object_bytes =
                    before.object_bytes.saturating_sub(change.bytes_of(before.snapshot.revision()));
            }
        }
        let left = before.map_or(0, |before| before.bytes());
        self.bytes.add(state.bytes());
        self.bytes.add(left);
        self.bytes.remove(counted);
        self.states.insert(at, state);
        dropped.extend(self.drop_excess());
        dropped
    }

    /// Counts what the changes leave to the retained states. `present` is the state after them.
    pub(crate) fn note(&mut self, changes: &[Change], present: &Snapshot) -> Dropped {
        self.present = present.clone();
        let Some(newest) = self.states.back_mut() else { return Vec::new() };
        let before = newest.bytes();
        for change in changes {
            newest.note(change);
        }
        let after = newest.bytes();
        self.bytes.add(after.saturating_sub(before));
        self.drop_excess()
    }

    /// Drops all states, because changes may have been missed before `present`.
    pub(crate) fn reset(&mut self, present: &Snapshot) -> Dropped {
        self.present = present.clone();
        self.bytes.remove(self.bytes.get());
        self.states.drain(..).map(|state| state.snapshot).collect()
    }

    /// Drops the states that are older than the compaction or than the greatest age. Returns the time of the next trim;
    /// `None` when nothing is retained.
    pub(crate) fn trim(&mut self, compacted: Revision, now: Instant) -> (Option<Instant>, Dropped) {
        let mut dropped = Vec::new();
        while let Some(oldest) = self.states.front() {
            let is_old = now.saturating_duration_since(oldest.at) >= self.max_age;
            if oldest.last >= compacted && !is_old {
                return (Some(now + self.max_age / 8), dropped);
            }
            dropped.extend(self.drop_oldest());
        }
        (None, dropped)
    }

    fn drop_excess(&mut self) -> Dropped {
        let mut dropped = Vec::new();
        while self.states.len() > MAX_STATES
            || self.bytes.get() > self.max_bytes
            || (self.bytes.is_too_much() && !self.states.is_empty())
        {
            let Some(oldest) = self.drop_oldest() else { break };
            dropped.push(oldest);
        }
        dropped
    }

    fn drop_oldest(&mut self) -> Option<Snapshot> {
        let oldest = self.states.pop_front()?;
        self.bytes.remove(oldest.bytes());
        Some(oldest.snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{object_map::ObjectMap, testing::object_of};

    const SHARE: usize = 256 << 10;

    fn retained(max_bytes: usize) -> RetainedStates {
        RetainedStates::new(max_bytes, Duration::from_secs(300), ByteBudget::of_logs())
    }

    /// A resource that is changed and retained.
    struct Resource {
        states: RetainedStates,
        objects: ObjectMap,
        revision: u64,
        changes: Vec<Change>,
    }

    impl Resource {
        fn new(max_bytes: usize) -> Resource {
            let objects = ObjectMap::default();
            Resource { states: retained(max_bytes), objects, revision: 10, changes: Vec::new() }
        }

        fn snapshot(&self) -> Snapshot {
            Snapshot::new(self.objects.clone(), Default::default(), Revision(self.revision))
        }

        fn put(&mut self, name: &str, size: usize) {
            self.revision += 1;
            let current = object_of(&format!("/p/{name}"), self.revision, &"x".repeat(size));
            let previous = self.objects.insert(current.clone());
            let revision = Revision(self.revision);
            self.note(Change { revision, current: Some(current), previous });
        }

        fn note(&mut self, change: Change) {
            self.changes.push(change.clone());
            let present = self.snapshot();
            drop(self.states.note(&[change], &present));
        }

        fn retain(&mut self) -> Snapshot {
            let snapshot = self.snapshot();
            assert!(self.states.retain(&snapshot, Instant::now()).0);
            snapshot
        }

        fn retained(&self) -> Vec<u64> {
            self.states.states.iter().map(|state| state.snapshot.revision().0).collect()
        }

        fn object_bytes(&self) -> Vec<usize> {
            self.states.states.iter().map(|state| state.object_bytes).collect()
        }

        fn check(&self) {
            let all = self.states.states.iter().map(State::bytes).sum::<usize>();
            assert_eq!(self.states.bytes.get(), all);
        }
    }

    #[test]
    fn an_object_is_counted_with_the_newest_state_that_has_it() {
        let mut resource = Resource::new(1 << 20);
        let size = |revision: u64| object_of("/p/a", revision, &"x".repeat(1000)).memory();
        resource.put("a", 1000);
        resource.retain();
        resource.put("b", 1000);
        // Nothing of the first state was replaced, and `b` is not in it.
        resource.put("b", 1000);
        assert_eq!(resource.object_bytes(), [0]);
        resource.retain();
        resource.put("a", 1000);
        resource.put("a", 1000);
        resource.put("b", 1000);
        assert_eq!(resource.object_bytes(), [0, 2 * size(11)]);
        assert_eq!(resource.retained(), [11, 13]);
        resource.check();
        // The state between: its `a` was replaced when the second state was there, its `b` before.
        let mut between = ObjectMap::default();
        between.insert(object_of("/p/a", 11, &"x".repeat(1000)));
        between.insert(object_of("/p/b", 12, &"x".repeat(1000)));
        let between = Snapshot::new(between, Default::default(), Revision(12));
        let since: Vec<_> =
            resource.changes.iter().filter(|change| change.revision.0 > 12).cloned().collect();
        drop(resource.states.retain_past(&between, &since, Instant::now()));
        assert_eq!(resource.retained(), [11, 12, 13]);
        assert_eq!(resource.object_bytes(), [0, size(12), 2 * size(11)]);
        assert_eq!(resource.states.states.iter().map(|state| state.changes).collect::<Vec<_>>(), [1, 1, 3]);
        resource.check();
        assert!(resource.states.get(Revision(12)).unwrap().is_same_state(&between));
    }

    #[test]
    fn a_state_is_retained_for_all_revisions_until_the_next_change() {
        let mut resource = Resource::new(1 << 20);
        resource.put("a", 1);
        let first = resource.retain();
        assert!(resource.states.retain(&first.clone().at_least(Revision(15)), Instant::now()).0);
        for (revision, is_retained) in [(10, false), (11, true), (13, true), (15, true), (16, false)] {
            let found = resource.states.get(Revision(revision));
            assert_eq!(found.map(|state| state.revision().0), is_retained.then_some(revision));
        }
        resource.revision = 20;
        resource.put("a", 1);
        assert!(resource.states.retain(&first.clone().at_least(Revision(18)), Instant::now()).0);
        // A reader that was slow retains the state for a revision before that of a quicker one.
        let present = resource.snapshot();
        assert!(resource.states.retain(&present.clone().at_least(Revision(25)), Instant::now()).0);
        assert!(resource.states.retain(&present, Instant::now()).0);
        assert_eq!(resource.retained(), [11, 21]);
        let unknown = Snapshot::new(ObjectMap::default(), Default::default(), Revision(19));
        assert!(!resource.states.retain(&unknown, Instant::now()).0);
        resource.retain();
        assert_eq!(resource.retained(), [11, 21]);
        resource.check();
    }

    #[test]
    fn states_have_bounds_of_number_bytes_and_age() {
        let mut resource = Resource::new(1 << 20);
        for _ in 0..1000 {
            resource.put("a", 10);
            resource.retain();
        }
        assert_eq!(resource.retained().len(), MAX_STATES);
        assert_eq!(resource.retained().last(), Some(&resource.revision));
        resource.check();
        for _ in 0..100 {
            resource.put("a", 100_000);
            resource.retain();
            assert!(resource.states.bytes.get() <= 1 << 20);
        }
        assert_eq!(resource.retained().len(), (1 << 20) / 100_000 + 1);
        resource.check();
        // One that would be too large alone.
        resource.put("a", 2 << 20);
        resource.retain();
        resource.put("a", 1);
        assert_eq!((resource.retained().len(), resource.states.bytes.get()), (0, 0));
        resource.put("a", 1);
        resource.retain();
        resource.put("a", 1);
        resource.retain();
        let now = Instant::now();
        let (next, dropped) = resource.states.trim(Revision(resource.revision - 1), now);
        assert!(next.is_some_and(|next| next > now) && dropped.is_empty());
        let (_, dropped) = resource.states.trim(Revision(resource.revision), now);
        assert_eq!(dropped.len(), 1);
        let (next, dropped) = resource.states.trim(Revision(0), now + Duration::from_secs(301));
        assert_eq!((next, dropped.len()), (None, 1));
        resource.check();
    }

    #[test]
    fn all_resources_together_have_a_budget() {
        let budget = ByteBudget::new(SHARE, SHARE);
        let mut resources: Vec<_> = (0..4)
            .map(|_| Resource {
                states: RetainedStates::new(usize::MAX, Duration::MAX, budget.clone()),
                ..Resource::new(0)
            })
            .collect();
        for _ in 0..50 {
            for resource in &mut resources {
                resource.put("a", SHARE / 8);
                resource.retain();
            }
        }
        assert!(budget.used() <= 5 * SHARE, "{}", budget.used());
        resources.iter().for_each(Resource::check);
        drop(resources);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_reset_drops_all() {
        let mut resource = Resource::new(1 << 20);
        resource.put("a", 1);
        resource.retain();
        assert_eq!(resource.states.reset(&Snapshot::default()).len(), 1);
        assert!(resource.states.get(Revision(resource.revision)).is_none());
        assert_eq!(resource.states.bytes.get(), 0);
    }
}
