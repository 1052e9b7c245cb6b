//! Decides which labels are indexed: those that lists of many objects ask for again and again.

use crate::Label;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Lists of fewer objects walk them all.
const MANY: usize = 1000;
/// The number of lists that ask for a label before it is indexed. To make the index walks the objects once more, as each of
/// these lists did.
const ENOUGH: u32 = 3;
/// The same for a label of which the last index had too many objects.
const ENOUGH_AGAIN: u32 = 1000;
/// The most indexes of a resource.
const MOST_INDEXES: usize = 16;
/// The most labels that are counted, with and without an index.
const MOST_COUNTED: usize = 64;
/// The divisor of the largest part of the objects that an index may have: looking up more of them by key costs as much as
/// walking all.
const PART: usize = 16;

/// The labels that lists of one resource ask for.
#[derive(Debug, Default)]
pub(crate) struct LabelDemand {
    /// The label that was asked for last is the last one.
    asked: Mutex<Vec<Asked>>,
    due: Notify,
}

#[derive(Debug)]
struct Asked {
    label: Label,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// The number of lists until the label is wanted.
    Counted(u32),
    /// The index is to be made.
    Wanted,
    Indexed,
}

impl LabelDemand {
    /// Notes that a list of a resource with `objects` objects asks for a label.
    pub(crate) fn ask(&self, label: &Label, objects: usize) {
        if objects < MANY {
            return;
        }
        let mut asked = self.asked.lock();
        let mut entry = match asked.iter().position(|entry| entry.label == *label) {
            Some(at) => asked.remove(at),
            None => {
                if asked.len() >= MOST_COUNTED {
                    let oldest = asked.iter().position(|entry| matches!(entry.state, State::Counted(_)));
                    // Labels that wait for their index are not forgotten.
                    let Some(oldest) = oldest else { return };
                    asked.remove(oldest);
                }
                Asked { label: label.clone(), state: State::Counted(ENOUGH) }
            }
        };
        if let State::Counted(left) = &mut entry.state {
            *left -= 1;
            if *left == 0 {
                entry.state = State::Wanted;
                self.due.notify_one();
            }
        }
        asked.push(entry);
    }

    /// A label that is to be indexed; waits for one. Cancel safe. Each is returned until [`LabelDemand::settle`] is called.
    pub(crate) async fn wanted(&self) -> Label {
        loop {
            let wanted = self
                .asked
                .lock()
                .iter()
                .find(|entry| entry.state == State::Wanted)
                .map(|entry| entry.label.clone());
            match wanted {
                Some(label) => return label,
                None => self.due.notified().await,
            }
        }
    }

    /// Decides on the index of a label, which has `keys` of the `objects` objects. Returns whether the index is kept, and the
    /// label whose index is dropped for it.
    pub(crate) fn settle(&self, label: &Label, keys: usize, objects: usize) -> (bool, Option<Label>) {
        let mut asked = self.asked.lock();
        let Some(at) = asked.iter().position(|entry| entry.label == *label) else { return (false, None) };
        let is_kept = keys <= objects / PART;
        let full = asked.iter().filter(|entry| entry.state == State::Indexed).count() >= MOST_INDEXES;
        let mut dropped = None;
        if is_kept
            && full
            && let Some(oldest) = asked.iter_mut().find(|entry| entry.state == State::Indexed)
        {
            oldest.state = State::Counted(ENOUGH);
            dropped = Some(oldest.label.clone());
        }
        if let Some(entry) = asked.get_mut(at) {
            entry.state = if is_kept { State::Indexed } else { State::Counted(ENOUGH_AGAIN) };
        }
        (is_kept, dropped)
    }

    /// Notes that all indexes are gone.
    pub(crate) fn reset(&self) {
        self.asked.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn label(number: usize) -> Label {
        Label { name: "app".into(), value: number.to_string().into() }
    }

    fn wanted(demand: &LabelDemand) -> Option<Label> {
        match pin!(demand.wanted()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(label) => Some(label),
            Poll::Pending => None,
        }
    }

    fn ask(demand: &LabelDemand, number: usize, times: u32) {
        (0..times).for_each(|_| demand.ask(&label(number), MANY));
    }

    #[test]
    fn a_label_is_wanted_after_some_lists_of_many_objects() {
        let demand = LabelDemand::default();
        (0..9).for_each(|_| demand.ask(&label(1), MANY - 1));
        ask(&demand, 1, ENOUGH - 1);
        assert_eq!(wanted(&demand), None);
        ask(&demand, 1, 1);
        assert_eq!(wanted(&demand), Some(label(1)));
        assert_eq!(demand.settle(&label(1), MANY / PART, MANY), (true, None));
        ask(&demand, 1, 2 * ENOUGH);
        assert_eq!(wanted(&demand), None);
    }

    #[test]
    fn a_label_of_most_objects_is_not_indexed() {
        let demand = LabelDemand::default();
        ask(&demand, 1, ENOUGH);
        assert_eq!(demand.settle(&label(1), MANY / PART + 1, MANY), (false, None));
        ask(&demand, 1, ENOUGH_AGAIN - 1);
        assert_eq!(wanted(&demand), None);
        ask(&demand, 1, 1);
        assert_eq!(wanted(&demand), Some(label(1)));
    }

    #[test]
    fn the_label_that_was_not_asked_for_longest_gives_way() {
        let demand = LabelDemand::default();
        for number in 0..MOST_INDEXES {
            ask(&demand, number, ENOUGH);
            assert_eq!(demand.settle(&label(number), 0, MANY), (true, None));
        }
        ask(&demand, 0, 1);
        ask(&demand, 100, ENOUGH);
        assert_eq!(demand.settle(&label(100), 0, MANY), (true, Some(label(1))));
    }

    #[test]
    fn labels_that_are_asked_for_once_take_bounded_memory_and_leave_the_indexes() {
        let demand = LabelDemand::default();
        ask(&demand, 0, ENOUGH);
        demand.settle(&label(0), 0, MANY);
        (1..10_000).for_each(|number| ask(&demand, number, 1));
        assert_eq!(demand.asked.lock().len(), MOST_COUNTED);
        assert_eq!(demand.asked.lock()[0].state, State::Indexed);
        // Nobody makes the indexes.
        (1..10_000).for_each(|number| ask(&demand, number, ENOUGH));
        assert_eq!(demand.asked.lock().len(), MOST_COUNTED);
        demand.reset();
        assert_eq!(demand.asked.lock().len(), 0);
    }
}
