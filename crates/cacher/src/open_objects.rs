//! Packs the objects of a resource that were written longest ago, when the open ones of all resources exceed a budget.

use crate::{ByteBudget, CachedObject, byte_budget::BudgetedBytes};
use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};

/// The number of replaced objects in the queue that are not worth a pass over it.
const FEW: usize = 1024;

/// The current objects of a resource that are open, in the order of their writes.
///
/// Only their owner, the reflector, packs them. So an object that is not packed is counted, until it is replaced.
#[derive(Debug)]
pub(crate) struct OpenObjects {
    queue: VecDeque<Weak<CachedObject>>,
    bytes: BudgetedBytes,
    /// The number of objects in the queue that have been replaced or deleted.
    replaced: usize,
}

impl OpenObjects {
    pub(crate) fn new(budget: ByteBudget) -> OpenObjects {
        OpenObjects { queue: VecDeque::new(), bytes: BudgetedBytes::new(budget), replaced: 0 }
    }

    /// Adds a current object.
    pub(crate) fn insert(&mut self, object: &Arc<CachedObject>) {
        if !object.is_packed() {
            self.bytes.add(object.json_memory());
            self.queue.push_back(Arc::downgrade(object));
        }
    }

    /// Removes an object that was replaced or deleted.
    pub(crate) fn remove(&mut self, object: &CachedObject) {
        if !object.is_packed() {
            self.bytes.remove(object.json_memory());
            self.replaced += 1;
        }
    }

    /// Packs at most `limit` objects while the budget is exceeded, the oldest write first. `is_current` tells the objects
    /// that were not removed. Returns whether it packed any.
    pub(crate) fn pack_excess(
        &mut self,
        limit: usize,
        is_current: impl Fn(&Arc<CachedObject>) -> bool,
    ) -> bool {
        let mut packed = 0;
        while self.bytes.is_too_much()
            && packed < limit
            && let Some(oldest) = self.queue.pop_front()
        {
            match oldest.upgrade().filter(&is_current) {
                Some(object) => {
                    self.bytes.remove(object.json_memory());
                    object.pack();
                    packed += 1;
                }
                None => self.replaced -= 1,
            }
        }
        if self.replaced > FEW && self.replaced > self.queue.len() / 2 {
            self.queue.retain(|object| object.upgrade().is_some_and(|object| is_current(&object)));
            self.queue.shrink_to(self.queue.len() * 2);
            self.replaced = 0;
        }
        packed > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::object_of;

    const SIZE: usize = 1000;

    struct Resource {
        objects: Vec<Arc<CachedObject>>,
        open: OpenObjects,
    }

    impl Resource {
        fn new(budget: &ByteBudget) -> Resource {
            Resource { objects: Vec::new(), open: OpenObjects::new(budget.clone()) }
        }

        fn write(&mut self, name: &str) {
            let written = object_of(&format!("/p/{name}"), 1, &"x".repeat(SIZE - 2));
            if let Some(at) = self.objects.iter().position(|object| object.key() == written.key()) {
                self.open.remove(&self.objects.remove(at));
            }
            self.open.insert(&written);
            self.objects.push(written);
            let Resource { objects, open } = self;
            open.pack_excess(100, |object| objects.iter().any(|current| Arc::ptr_eq(current, object)));
        }

        fn packed(&self) -> Vec<&str> {
            self.objects.iter().filter(|object| object.is_packed()).map(|object| object.name()).collect()
        }
    }

    #[test]
    fn the_oldest_writes_are_packed_beyond_the_budget() {
        let budget = ByteBudget::new(3 * SIZE, SIZE);
        let mut resource = Resource::new(&budget);
        for name in ["a", "b", "c", "a"] {
            resource.write(name);
        }
        assert_eq!(resource.packed(), [""; 0]);
        resource.write("d");
        assert_eq!(resource.packed(), ["b"]);
        // A packed object that is written again is open again.
        resource.write("b");
        assert_eq!(resource.packed(), ["c"]);
        assert_eq!(budget.used(), 3 * SIZE);
        // Each resource keeps its share.
        let mut other = Resource::new(&budget);
        other.write("e");
        assert_eq!((other.packed(), budget.used()), (vec![], 4 * SIZE));
        other.write("f");
        assert_eq!((other.packed(), budget.used()), (vec!["e"], 4 * SIZE));
        resource.write("g");
        assert_eq!(resource.packed(), ["c", "a", "d"]);
        drop((resource, other));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn the_queue_does_not_grow_with_the_writes_of_one_object() {
        let mut resource = Resource::new(&ByteBudget::of_open_objects());
        for _ in 0..10 * FEW {
            resource.write("a");
        }
        assert!(resource.open.queue.len() <= FEW + 2, "{}", resource.open.queue.len());
        assert_eq!(resource.open.bytes.get(), SIZE);
    }
}
