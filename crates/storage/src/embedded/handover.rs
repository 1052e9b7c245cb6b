//! Passes batches and orders to the apply thread.
//!
//! A batch from the commit thread waits for further ones, so that a transaction of the database is worth its page
//! writes: until there are enough for one, or for [`DELAY`].

use super::inbox::Reply;
use crate::{Revision, StorageError};
use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// The longest time that a batch waits for further ones.
const DELAY: Duration = Duration::from_millis(10);

/// An order for the apply thread.
pub(super) enum Order {
    /// Apply the writes up to a revision to the database.
    Apply {
        until: Revision,
        reply: Reply,
    },
    /// Probe whether the database has room.
    Probe {
        reply: Reply,
    },
    Compact {
        revision: Revision,
        reply: Reply,
    },
}

impl Order {
    pub(super) fn refuse(self, error: &StorageError) {
        let (Order::Apply { reply, .. } | Order::Probe { reply } | Order::Compact { reply, .. }) = self;
        // The caller may have been dropped.
        let _ = reply.send(Err(error.clone()));
    }
}

/// The work of one turn of the apply thread.
#[derive(Default)]
pub(super) struct Turn {
    pub(super) orders: Vec<Order>,
    /// The backlog has waited long enough, or is large enough.
    pub(super) due: bool,
    /// No order follows.
    pub(super) closing: bool,
}

#[derive(Default)]
pub(super) struct Handover {
    state: Mutex<State>,
    ready: Condvar,
}

#[derive(Default)]
struct State {
    orders: Vec<Order>,
    /// The time of the oldest batch that waits.
    since: Option<Instant>,
    /// There is enough for a transaction.
    enough: bool,
    closing: bool,
    /// The apply thread has ended.
    ended: bool,
    asleep: bool,
}

impl State {
    fn wake(&mut self, ready: &Condvar) {
        if self.asleep {
            self.asleep = false;
            ready.notify_one();
        }
    }

    /// The present work, if there is any.
    fn turn(&mut self) -> Option<Turn> {
        let due = self.enough || self.since.is_some_and(|since| since.elapsed() >= DELAY);
        if due {
            (self.since, self.enough) = (None, false);
        }
        let turn = Turn { orders: std::mem::take(&mut self.orders), due, closing: self.closing };
        (due || turn.closing || !turn.orders.is_empty()).then_some(turn)
    }
}

impl Handover {
    /// Reports a batch added to the backlog; `enough` says whether the backlog is worth a transaction.
    pub(super) fn written(&self, enough: bool) {
        let mut state = self.state.lock();
        let first = state.since.is_none();
        state.since.get_or_insert_with(Instant::now);
        if first || (enough && !state.enough) {
            state.enough |= enough;
            state.wake(&self.ready);
        }
    }

    /// Queues an order; refuses it when the apply thread is closing or has ended.
    pub(super) fn order(&self, order: Order) {
        let mut state = self.state.lock();
        if state.closing || state.ended {
            drop(state);
            return order.refuse(&StorageError::Closed);
        }
        state.orders.push(order);
        state.wake(&self.ready);
    }

    /// Waits for work. Returns an empty turn after `patience` (`None`: waits without a limit).
    pub(super) fn take(&self, patience: Option<Duration>) -> Turn {
        let enough_patience = patience.map(|patience| Instant::now() + patience);
        let mut state = self.state.lock();
        loop {
            if let Some(turn) = state.turn() {
                return turn;
            }
            let due = state.since.map(|since| since + DELAY);
            let until = [enough_patience, due].into_iter().flatten().min();
            state.asleep = true;
            match until {
                None => self.ready.wait_while(&mut state, |state| state.asleep),
                Some(until) => {
                    self.ready.wait_while_until(&mut state, |state| state.asleep, until);
                }
            }
            state.asleep = false;
            if enough_patience.is_some_and(|until| until <= Instant::now()) {
                return state.turn().unwrap_or_default();
            }
        }
    }

    /// Lets the apply thread end after it has carried out its orders.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closing = true;
        state.wake(&self.ready);
    }

    /// Marks the apply thread as ended, and returns the orders that it did not take.
    pub(super) fn end(&self) -> Vec<Order> {
        let mut state = self.state.lock();
        state.ended = true;
        std::mem::take(&mut state.orders)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_due_when_it_is_enough_or_has_waited() {
        let handover = Handover::default();
        let nothing = handover.take(Some(Duration::ZERO));
        assert!(!nothing.due && !nothing.closing);
        let written = Instant::now();
        handover.written(false);
        assert!(handover.take(None).due);
        assert!(written.elapsed() >= DELAY);
        handover.written(true);
        assert!(handover.take(Some(Duration::ZERO)).due);
        assert!(!handover.take(Some(Duration::ZERO)).due);
    }

    #[test]
    fn who_asks_after_the_end_is_told_so() {
        let handover = Handover::default();
        let ask = || {
            let (reply, mut answer) = tokio::sync::oneshot::channel();
            handover.order(Order::Apply { until: Revision(1), reply });
            answer.try_recv()
        };
        assert!(ask().is_err(), "it waits");
        handover.close();
        let turn = handover.take(None);
        assert!(turn.closing);
        assert_eq!(turn.orders.len(), 1);
        assert_eq!(ask(), Ok(Err(StorageError::Closed)));
    }
}
