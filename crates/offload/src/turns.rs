//! Tasks in the order of turns.

use std::collections::{HashMap, VecDeque};

/// Waiting tasks by the party that they belong to. The parties take turns, so that many tasks of one delay a task of another by
/// one of them at most; the tasks of a party keep their order.
#[derive(Debug)]
pub(crate) struct Turns<T> {
    /// The parties with waiting tasks; the first one has the next turn.
    order: VecDeque<u64>,
    waiting: HashMap<u64, VecDeque<T>>,
}

impl<T> Turns<T> {
    pub(crate) fn new() -> Turns<T> {
        Turns { order: VecDeque::new(), waiting: HashMap::new() }
    }

    pub(crate) fn push(&mut self, party: u64, task: T) {
        let tasks = self.waiting.entry(party).or_default();
        if tasks.is_empty() {
            self.order.push_back(party);
        }
        tasks.push_back(task);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Takes the task whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let party = self.order.pop_front()?;
        let tasks = self.waiting.get_mut(&party)?;
        let task = tasks.pop_front();
        match tasks.is_empty() {
            true => drop(self.waiting.remove(&party)),
            false => self.order.push_back(party),
        }
        task
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parties_take_turns() {
        let mut turns = Turns::new();
        for (party, task) in [(1, "a"), (1, "b"), (1, "c"), (2, "d"), (2, "e"), (3, "f")] {
            turns.push(party, task);
        }
        assert_eq!(turns.pop(), Some("a"));
        turns.push(4, "g");
        let rest: Vec<_> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(rest, ["d", "f", "b", "g", "e", "c"]);
        assert!(turns.waiting.is_empty(), "nothing is kept of those who left");
        turns.push(1, "h");
        assert_eq!((turns.pop(), turns.pop()), (Some("h"), None));
    }
}
