//! Bounds the memory of the states that slow readers hold.
//!
//! A response that is sent piece by piece holds its state until the last piece, and with it each object that is replaced
//! or deleted meanwhile. The speed of the client decides how long. The objects that all readers of all resources hold
//! beside the present states have a budget; beyond it, the readers that began first lose their states.

use crate::{
    Snapshot,
    byte_budget::BudgetedBytes,
    event::Change,
    retained::{CHANGE_BYTES, ENTRY_BYTES},
};
use parking_lot::Mutex;
use pintle_storage::Revision;
use std::{any::Any, collections::BTreeMap, sync::Arc};

/// The part of a state that a reader holds, as long as there is memory for it.
pub struct Held<T: Send + 'static> {
    content: Arc<Mutex<Content<T>>>,
    /// The place among the readers of a resource.
    place: Option<(Arc<Mutex<HeldStates>>, u64)>,
}

enum Content<T> {
    Here(T),
    /// The reader has taken it, and will put it back.
    Taken,
    Lost,
}

impl<T: Send + 'static> Held<T> {
    /// Holds what belongs to no state.
    pub fn free(content: T) -> Held<T> {
        Held { content: Arc::new(Mutex::new(Content::Here(content))), place: None }
    }

    /// Takes the content, to read from it; `None` when it was lost, or is taken.
    pub fn take(&self) -> Option<T> {
        let mut content = self.content.lock();
        match std::mem::replace(&mut *content, Content::Taken) {
            Content::Here(taken) => Some(taken),
            Content::Taken => None,
            Content::Lost => {
                *content = Content::Lost;
                None
            }
        }
    }

    /// Holds the content again, after it was read. It is dropped if it was lost meanwhile.
    pub fn put_back(&self, taken: T) {
        let mut content = self.content.lock();
        if !matches!(*content, Content::Lost) {
            *content = Content::Here(taken);
        }
    }
}

impl<T: Send + 'static> Drop for Held<T> {
    fn drop(&mut self) {
        if let Some((states, id)) = &self.place {
            states.lock().remove(*id);
        }
    }
}

/// Holds what a reader has of a state at `revision`, of which `own_bytes` are no part of the present state.
pub(crate) fn hold<T: Send + 'static>(
    states: &Arc<Mutex<HeldStates>>,
    revision: Revision,
    own_bytes: usize,
    content: T,
) -> Held<T> {
    let content = Arc::new(Mutex::new(Content::Here(content)));
    let reader = Reader { revision, own_bytes, since: Replaced::default(), content: content.clone() };
    let (id, lost) = states.lock().add(reader);
    drop(lost);
    Held { content, place: Some((states.clone(), id)) }
}

/// Contents that readers have lost. They are dropped without a lock, because that may take long.
pub(crate) type Lost = Vec<Box<dyn Any + Send>>;

trait Lose: Send + Sync {
    /// Takes the content away; `None` if the reader works with it, and drops it afterwards.
    fn lose(&self) -> Option<Box<dyn Any + Send>>;
}

impl<T: Send + 'static> Lose for Mutex<Content<T>> {
    fn lose(&self) -> Option<Box<dyn Any + Send>> {
        match std::mem::replace(&mut *self.lock(), Content::Lost) {
            Content::Here(content) => Some(Box::new(content)),
            Content::Taken | Content::Lost => None,
        }
    }
}

/// The readers of one resource that hold states.
pub(crate) struct HeldStates {
    readers: BTreeMap<u64, Reader>,
    next_id: u64,
    /// The objects of held states that changes have replaced.
    replaced: Replaced,
    /// The number of objects of the present state.
    objects: usize,
    /// The sum of [`Reader::own_bytes`].
    own_bytes: usize,
    bytes: BudgetedBytes,
}

struct Reader {
    revision: Revision,
    /// The bytes of objects that no other reader shares.
    own_bytes: usize,
    /// The count of replaced objects when the reader began.
    since: Replaced,
    content: Arc<dyn Lose>,
}

/// Counts what changes replace.
#[derive(Clone, Copy, Default)]
struct Replaced {
    changes: usize,
    bytes: usize,
}

impl HeldStates {
    pub(crate) fn new(bytes: BudgetedBytes) -> HeldStates {
        HeldStates {
            readers: BTreeMap::new(),
            next_id: 0,
            replaced: Replaced::default(),
            objects: 0,
            own_bytes: 0,
            bytes,
        }
    }

    fn add(&mut self, reader: Reader) -> (u64, Lost) {
        let id = self.next_id;
        self.next_id += 1;
        self.own_bytes += reader.own_bytes;
        self.readers.insert(id, Reader { since: self.replaced, ..reader });
        (id, self.lose_excess())
    }

    fn remove(&mut self, id: u64) {
        if let Some(reader) = self.readers.remove(&id) {
            self.own_bytes -= reader.own_bytes;
            self.count();
        }
    }

    /// Counts what the changes leave to the readers. `present` is the state after them.
    pub(crate) fn note(&mut self, changes: &[Change], present: &Snapshot) -> Lost {
        let Some((_, newest)) = self.readers.last_key_value() else { return Lost::new() };
        // Objects that were added after the last state are in no state.
        let bytes: usize = changes.iter().map(|change| change.bytes_of(newest.revision)).sum();
        self.replaced.bytes += bytes;
        self.replaced.changes += changes.len();
        self.objects = present.len();
        self.lose_excess()
    }

    /// All readers lose their states, because the cache has read another one from the store.
    pub(crate) fn reset(&mut self) -> Lost {
        let mut lost = Lost::new();
        while !self.readers.is_empty() {
            lost.extend(self.lose_oldest());
        }
        lost
    }

    /// The bytes that the changes have left to the readers.
    fn replaced_bytes(&self) -> usize {
        let Some((_, oldest)) = self.readers.first_key_value() else { return 0 };
        let changes = self.replaced.changes - oldest.since.changes;
        let nodes = (changes * CHANGE_BYTES).min(self.readers.len() * self.objects * ENTRY_BYTES);
        nodes + self.replaced.bytes - oldest.since.bytes
    }

    fn count(&mut self) {
        self.bytes.set(self.own_bytes + self.replaced_bytes());
    }

    /// The readers that began first lose their states. A state that was read for one reader, and is too large alone, is
    /// left to it.
    fn lose_excess(&mut self) -> Lost {
        let mut lost = Lost::new();
        self.count();
        while self.bytes.is_too_much() && (self.readers.len() > 1 || self.bytes.get() > 2 * self.own_bytes) {
            lost.extend(self.lose_oldest());
        }
        lost
    }

    fn lose_oldest(&mut self) -> Option<Box<dyn Any + Send>> {
        let (_, oldest) = self.readers.pop_first()?;
        self.own_bytes -= oldest.own_bytes;
        self.count();
        oldest.content.lose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ByteBudget, object_map::ObjectMap, testing::object_of};

    const BUDGET: usize = 100_000;
    const SIZE: usize = 10_000;

    /// A resource with readers that hold numbers.
    struct Resource {
        held: HeldStates,
        objects: ObjectMap,
        revision: u64,
    }

    impl Resource {
        fn new(budget: &ByteBudget) -> Resource {
            let bytes = BudgetedBytes::new(budget.clone());
            Resource { held: HeldStates::new(bytes), objects: ObjectMap::default(), revision: 10 }
        }

        fn snapshot(&self) -> Snapshot {
            Snapshot::new(self.objects.clone(), Default::default(), Revision(self.revision))
        }

        fn put(&mut self, name: &str) {
            self.revision += 1;
            let current = object_of(&format!("/p/{name}"), self.revision, &"x".repeat(SIZE));
            let previous = self.objects.insert(current.clone());
            let change = Change { revision: Revision(self.revision), current: Some(current), previous };
            let present = self.snapshot();
            drop(self.held.note(&[change], &present));
        }

        fn hold_own(&mut self, own_bytes: usize) -> (u64, Held<u32>) {
            let content = Arc::new(Mutex::new(Content::Here(7)));
            let reader = Reader {
                revision: Revision(self.revision),
                own_bytes,
                since: Replaced::default(),
                content: content.clone(),
            };
            (self.held.add(reader).0, Held { content, place: None })
        }

        fn hold(&mut self) -> (u64, Held<u32>) {
            self.hold_own(0)
        }
    }

    fn is_there(held: &Held<u32>) -> bool {
        held.take().inspect(|content| held.put_back(*content)).is_some()
    }

    #[test]
    fn only_what_a_state_has_is_counted() {
        let budget = ByteBudget::new(BUDGET, 0);
        let mut resource = Resource::new(&budget);
        resource.put("a");
        resource.put("a");
        assert_eq!(budget.used(), 0, "nobody reads");
        let (first, _held) = resource.hold();
        for _ in 0..1000 {
            resource.put("a");
        }
        // The first of the thousand replaced what the state has.
        let once = budget.used();
        assert!((SIZE..2 * SIZE).contains(&once), "{once}");
        let (second, held) = resource.hold();
        resource.put("a");
        assert!((2 * SIZE..3 * SIZE).contains(&budget.used()), "{}", budget.used());
        resource.held.remove(first);
        assert!((SIZE..2 * SIZE).contains(&budget.used()), "{}", budget.used());
        assert!(is_there(&held));
        resource.held.remove(second);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn the_readers_that_began_first_lose_their_states() {
        let budget = ByteBudget::new(BUDGET, 0);
        let mut resource = Resource::new(&budget);
        let mut readers = Vec::new();
        for _ in 0..100 {
            resource.put("a");
            readers.push(resource.hold().1);
            assert!(budget.used() <= BUDGET);
        }
        let there: Vec<_> = readers.iter().map(is_there).collect();
        assert!(there.is_sorted() && there.ends_with(&[true; 5]) && there.starts_with(&[false; 80]));
        drop(resource.held.reset());
        assert!(!readers.iter().any(is_there));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_single_reader_loses_a_state_of_which_too_much_is_replaced() {
        let budget = ByteBudget::new(BUDGET, 0);
        let mut resource = Resource::new(&budget);
        let names: Vec<_> = (0..12).map(|number| number.to_string()).collect();
        names.iter().for_each(|name| resource.put(name));
        let (_, held) = resource.hold();
        names.iter().take(6).for_each(|name| resource.put(name));
        assert!(is_there(&held));
        let content = held.take();
        names.iter().for_each(|name| resource.put(name));
        assert_eq!(budget.used(), 0);
        held.put_back(content.unwrap());
        assert!(!is_there(&held), "it was lost while its reader worked with it");
    }

    #[test]
    fn what_was_read_for_one_reader_is_counted_and_left_to_the_last() {
        let budget = ByteBudget::new(BUDGET, 0);
        let mut resource = Resource::new(&budget);
        let (_, first) = resource.hold_own(BUDGET / 2);
        let (_, second) = resource.hold_own(BUDGET / 2);
        assert!(is_there(&first) && is_there(&second));
        let (last, third) = resource.hold_own(2 * BUDGET);
        assert_eq!([&first, &second, &third].map(is_there), [false, false, true]);
        assert_eq!(budget.used(), 2 * BUDGET);
        // Others have what the budget leaves to each.
        let mut other = Resource::new(&budget);
        other.put("a");
        let (_, held) = other.hold();
        other.put("a");
        assert!(!is_there(&held));
        resource.held.remove(last);
        assert_eq!(budget.used(), 0);
    }
}
