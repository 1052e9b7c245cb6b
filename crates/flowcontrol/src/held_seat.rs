//! Seats that are held while a response is sent, for a limited time: a client that does not read must not keep a
//! seat.

use crate::{FlowControl, control::Seat};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// A seat that is released when this is dropped, or at its deadline.
pub struct HeldSeat {
    seat: Arc<Slot>,
    key: (Duration, u64),
    control: Arc<FlowControl>,
}

/// The seat, until it is released.
type Slot = Mutex<Option<Seat>>;

/// The held seats, by deadline.
#[derive(Default)]
pub(crate) struct HeldSeats {
    next: AtomicU64,
    by_end: Mutex<BTreeMap<(Duration, u64), Weak<Slot>>>,
}

impl Seat {
    /// Holds the seat for at most `limit`. [`FlowControl::run`] enforces that, to the second.
    pub fn hold(self, limit: Duration) -> HeldSeat {
        let control = self.control().clone();
        let key = (control.clock().now() + limit, control.held.next.fetch_add(1, Ordering::Relaxed));
        let seat = Arc::new(Mutex::new(Some(self)));
        control.held.by_end.lock().insert(key, Arc::downgrade(&seat));
        HeldSeat { seat, key, control }
    }
}

impl HeldSeats {
    pub(crate) fn release_expired(&self, now: Duration) {
        let expired = {
            let mut by_end = self.by_end.lock();
            let later = by_end.split_off(&(now, 0));
            std::mem::replace(&mut *by_end, later)
        };
        for seat in expired.into_values().filter_map(|seat| seat.upgrade()) {
            let seat = seat.lock().take();
            drop(seat);
        }
    }
}

impl Drop for HeldSeat {
    fn drop(&mut self) {
        self.control.held.by_end.lock().remove(&self.key);
        let seat = self.seat.lock().take();
        drop(seat);
    }
}
