//! Where the commit thread hands over to the apply thread, and whoever needs something of that asks for it.
//!
//! A batch that the commit thread has written waits for others, so that a transaction of the database is worth its pages:
//! until there is enough for one, or for [`DELAY`].

use super::inbox::Reply;
use crate::{Revision, StorageError};
use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// So long at most what was written waits for more.
const DELAY: Duration = Duration::from_millis(10);

/// What the apply thread is asked for.
pub(super) enum Order {
    /// Bring the database up to a revision that has been written.
    Apply {
        until: Revision,
        reply: Reply,
    },
    /// Try whether there is room in the database.
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
        // Who asked may have gone away.
        let _ = reply.send(Err(error.clone()));
    }
}

/// What the apply thread has to do.
#[derive(Default)]
pub(super) struct Turn {
    pub(super) orders: Vec<Order>,
    /// What was written has waited enough.
    pub(super) due: bool,
    /// Nothing follows.
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
    /// When the oldest of what waits was written.
    since: Option<Instant>,
    /// There is enough for a transaction.
    enough: bool,
    closing: bool,
    /// The apply thread is gone.
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

    /// What there is to do now, if there is anything.
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
    /// Something was added to the backlog, of which there is enough now or not.
    pub(super) fn written(&self, enough: bool) {
        let mut state = self.state.lock();
        let first = state.since.is_none();
        state.since.get_or_insert_with(Instant::now);
        if first || (enough && !state.enough) {
            state.enough |= enough;
            state.wake(&self.ready);
        }
    }

    /// Asks for something. Whoever cannot be answered any more is told so at once.
    pub(super) fn order(&self, order: Order) {
        let mut state = self.state.lock();
        if state.closing || state.ended {
            drop(state);
            return order.refuse(&StorageError::Closed);
        }
        state.orders.push(order);
        state.wake(&self.ready);
    }

    /// What there is to do, after at most `patience` if that is nothing (`None`: however long it takes).
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

    /// Lets the apply thread end when it has done what it was asked for.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closing = true;
        state.wake(&self.ready);
    }

    /// The apply thread ends.
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
