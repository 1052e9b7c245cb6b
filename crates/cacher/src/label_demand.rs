//! Decides by which labels objects are indexed: those that lists of many objects ask for again and again.

use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Notify;

/// Lists of fewer objects walk them all.
const MANY: usize = 1000;
/// The number of lists that ask for a label before it is indexed. To make the index walks the objects once more, as each of
/// these lists did.
const ENOUGH: u32 = 3;
/// The same for a label whose index was not worth its while, or had to give way to others.
const ENOUGH_AGAIN: u32 = 100;
/// The most indexes of a resource.
const MOST_INDEXES: usize = 16;
/// The most labels that are counted, with and without an index.
const MOST_COUNTED: usize = 64;

/// The names of the labels that lists of one resource ask for.
#[derive(Debug, Default)]
pub(crate) struct LabelDemand {
    /// The label that was asked for last is the last one.
    asked: Mutex<Vec<Asked>>,
    due: Notify,
}

#[derive(Debug)]
struct Asked {
    name: Arc<str>,
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
    pub(crate) fn ask(&self, name: &Arc<str>, objects: usize) {
        if objects < MANY {
            return;
        }
        let mut asked = self.asked.lock();
        let mut entry = match asked.iter().position(|entry| entry.name == *name) {
            Some(at) => asked.remove(at),
            None => {
                if asked.len() >= MOST_COUNTED {
                    let oldest = asked.iter().position(|entry| matches!(entry.state, State::Counted(_)));
                    // Labels that wait for their index are not forgotten.
                    let Some(oldest) = oldest else { return };
                    asked.remove(oldest);
                }
                Asked { name: name.clone(), state: State::Counted(ENOUGH) }
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
    pub(crate) async fn wanted(&self) -> Arc<str> {
        loop {
            let wanted = self
                .asked
                .lock()
                .iter()
                .find(|entry| entry.state == State::Wanted)
                .map(|entry| entry.name.clone());
            match wanted {
                Some(name) => return name,
                None => self.due.notified().await,
            }
        }
    }

    /// Notes whether the index of a label is kept.
    pub(crate) fn settle(&self, name: &str, is_kept: bool) {
        if let Some(entry) = self.asked.lock().iter_mut().find(|entry| &*entry.name == name) {
            entry.state = if is_kept { State::Indexed } else { State::Counted(ENOUGH_AGAIN) };
        }
    }

    /// The label whose index is to be dropped: the one that was not asked for longest, if there are too many indexes or
    /// they are `too_large`.
    pub(crate) fn give_way(&self, too_large: bool) -> Option<Arc<str>> {
        let mut asked = self.asked.lock();
        let mut indexed = asked.iter_mut().filter(|entry| entry.state == State::Indexed);
        let oldest = indexed.next()?;
        if !too_large && indexed.count() < MOST_INDEXES {
            return None;
        }
        oldest.state = State::Counted(ENOUGH_AGAIN);
        Some(oldest.name.clone())
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

    fn name(number: usize) -> Arc<str> {
        format!("label-{number}").into()
    }

    fn wanted(demand: &LabelDemand) -> Option<Arc<str>> {
        match pin!(demand.wanted()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(name) => Some(name),
            Poll::Pending => None,
        }
    }

    fn ask(demand: &LabelDemand, number: usize, times: u32) {
        (0..times).for_each(|_| demand.ask(&name(number), MANY));
    }

    #[test]
    fn a_label_is_wanted_after_some_lists_of_many_objects() {
        let demand = LabelDemand::default();
        (0..9).for_each(|_| demand.ask(&name(1), MANY - 1));
        ask(&demand, 1, ENOUGH - 1);
        assert_eq!(wanted(&demand), None);
        ask(&demand, 1, 1);
        assert_eq!(wanted(&demand), Some(name(1)));
        demand.settle(&name(1), true);
        ask(&demand, 1, 2 * ENOUGH_AGAIN);
        assert_eq!(wanted(&demand), None);
    }

    #[test]
    fn a_label_that_is_not_worth_an_index_is_looked_at_again_after_many_lists() {
        let demand = LabelDemand::default();
        ask(&demand, 1, ENOUGH);
        demand.settle(&name(1), false);
        ask(&demand, 1, ENOUGH_AGAIN - 1);
        assert_eq!(wanted(&demand), None);
        ask(&demand, 1, 1);
        assert_eq!(wanted(&demand), Some(name(1)));
    }

    #[test]
    fn the_label_that_was_not_asked_for_longest_gives_way() {
        let demand = LabelDemand::default();
        assert_eq!(demand.give_way(true), None);
        for number in 0..MOST_INDEXES {
            ask(&demand, number, ENOUGH);
            demand.settle(&name(number), true);
            assert_eq!(demand.give_way(false), None);
        }
        ask(&demand, 0, 1);
        ask(&demand, 100, ENOUGH);
        demand.settle(&name(100), true);
        assert_eq!(demand.give_way(false), Some(name(1)));
        assert_eq!(demand.give_way(false), None);
        assert_eq!(demand.give_way(true), Some(name(2)));
        // Labels that take turns do not have their indexes made again and again.
        ask(&demand, 1, ENOUGH_AGAIN - 1);
        assert_eq!(wanted(&demand), None);
    }

    #[test]
    fn labels_that_are_asked_for_once_take_bounded_memory_and_leave_the_indexes() {
        let demand = LabelDemand::default();
        ask(&demand, 0, ENOUGH);
        demand.settle(&name(0), true);
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
