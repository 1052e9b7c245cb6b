//! Watch targets in no order, each of which knows its place: [`Placed`].

use crate::{place::Place, watch_target::WatchTarget};
use std::sync::Arc;

/// Watch targets, any of which is removed at a cost that does not grow with their number.
pub(crate) struct Placed {
    place: fn(&WatchTarget) -> &Place,
    targets: Vec<Arc<WatchTarget>>,
}

impl Placed {
    /// An empty collection, whose targets keep their place in `place`. A target is in at most one collection of a place.
    pub(crate) fn new(place: fn(&WatchTarget) -> &Place) -> Placed {
        Placed { place, targets: Vec::new() }
    }

    pub(crate) fn push(&mut self, target: Arc<WatchTarget>) {
        (self.place)(&target).set(self.targets.len());
        self.targets.push(target);
    }

    /// Removes a target, if it is here.
    pub(crate) fn remove(&mut self, target: &Arc<WatchTarget>) {
        let at = (self.place)(target).get();
        if self.targets.get(at).is_some_and(|other| Arc::ptr_eq(other, target)) {
            self.targets.swap_remove(at);
            if let Some(moved) = self.targets.get(at) {
                (self.place)(moved).set(at);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Arc<WatchTarget>> {
        self.targets.iter()
    }

    pub(crate) fn into_vec(self) -> Vec<Arc<WatchTarget>> {
        self.targets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch_target::tests::target;

    #[test]
    fn targets_are_removed_in_any_order() {
        let mut placed = Placed::new(|target| &target.in_index);
        let mut left: Vec<_> = (0..50).map(|_| target(None)).collect();
        left.iter().for_each(|target| placed.push(target.clone()));
        // From the ends and from the middle.
        for step in 0..50 {
            let removed = left.remove((step * 7) % left.len());
            placed.remove(&removed);
            // Of a target that is not here, nothing is removed.
            placed.remove(&removed);
            let is_here = |target: &Arc<WatchTarget>| placed.iter().any(|other| Arc::ptr_eq(other, target));
            assert!(left.iter().all(is_here) && placed.iter().len() == left.len());
        }
        assert!(placed.is_empty());
    }
}
