//! Bounds the memory of request heads that have begun and not ended.
//!
//! Anybody can send the beginning of a head, and take long for its end. All such heads share a budget. When it is used
//! up, the connections whose heads began first are closed: the head of an honest client ends soon.

use crate::base::connection::ConnectionHandle;
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};

/// The default budget of all heads that have not ended, in bytes.
pub(super) const DEFAULT_HEAD_MEMORY: usize = 64 << 20;

/// An upper bound of the memory that a header takes beside its text, in bytes.
pub(super) const HEADER_BYTES: usize = 150;

/// The memory budget that heads share. Clones share one budget.
#[derive(Clone)]
pub(super) struct HeadBudget(Arc<Inner>);

struct Inner {
    all: usize,
    charges: Mutex<Charges>,
}

#[derive(Default)]
struct Charges {
    used: usize,
    next_id: u64,
    /// The oldest charge has the lowest id.
    by_id: BTreeMap<u64, (usize, ConnectionHandle)>,
}

impl Charges {
    fn release(&mut self, id: u64) {
        if let Some((bytes, _)) = self.by_id.remove(&id) {
            self.used -= bytes;
        }
    }
}

impl HeadBudget {
    /// A budget of `bytes` bytes.
    pub(super) fn new(bytes: usize) -> HeadBudget {
        HeadBudget(Arc::new(Inner { all: bytes, charges: Mutex::default() }))
    }

    /// The charge of a head on this connection, which is nothing at first.
    pub(super) fn charge(&self, connection: ConnectionHandle) -> HeadCharge {
        HeadCharge { budget: self.clone(), connection, id: None }
    }

    /// How many bytes are charged.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.0.charges.lock().used
    }
}

/// The charge of one head, which is returned on drop.
pub(super) struct HeadCharge {
    budget: HeadBudget,
    connection: ConnectionHandle,
    id: Option<u64>,
}

impl HeadCharge {
    /// Raises the charge to `bytes`. Severs the connections of the oldest charges, this one perhaps, that do not fit any
    /// more.
    pub(super) fn raise_to(&mut self, bytes: usize) {
        let mut guard = self.budget.0.charges.lock();
        let charges = &mut *guard;
        let id = *self.id.get_or_insert_with(|| {
            charges.next_id += 1;
            charges.by_id.insert(charges.next_id, (0, self.connection.clone()));
            charges.next_id
        });
        // A connection that was severed is charged no longer.
        let Some((charged, _)) = charges.by_id.get_mut(&id) else { return };
        charges.used += bytes.saturating_sub(*charged);
        *charged = bytes.max(*charged);
        while charges.used > self.budget.0.all
            && let Some((_, (bytes, connection))) = charges.by_id.pop_first()
        {
            charges.used -= bytes;
            connection.sever();
            tracing::debug!(bytes, "a connection is closed: its request head takes too long");
        }
    }
}

impl Drop for HeadCharge {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.budget.0.charges.lock().release(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn the_oldest_heads_give_way() {
        let budget = HeadBudget::new(1000);
        let connections = [(); 4].map(|()| ConnectionHandle::new(10));
        let is_severed =
            || [0, 1, 2, 3].map(|index: usize| connections[index].severed().now_or_never().is_some());
        let [mut first, mut second, mut third, mut fourth] =
            [0, 1, 2, 3].map(|index: usize| budget.charge(connections[index].clone()));
        first.raise_to(400);
        second.raise_to(400);
        drop(third);
        third = budget.charge(connections[2].clone());
        third.raise_to(200);
        assert_eq!((budget.used(), is_severed()), (1000, [false; 4]));
        fourth.raise_to(1);
        assert_eq!((budget.used(), is_severed()), (601, [true, false, false, false]));
        // It is charged no longer.
        first.raise_to(900);
        drop(first);
        assert_eq!(budget.used(), 601);
        // A head larger than the budget ends all, itself last.
        fourth.raise_to(2000);
        assert_eq!((budget.used(), is_severed()), (0, [true; 4]));
        drop((second, third, fourth));
        assert_eq!(budget.used(), 0);
    }
}
