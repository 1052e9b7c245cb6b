//! Bounds the memory of responses that are made and not sent yet.
//!
//! A client's reading speed decides how long a response stays in memory. All responses share a budget. When it is used
//! up, further responses are refused, and the connections of the slowest readers are cut off.

use super::cutoff::Cutoff;
use bytes::Bytes;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// The default budget of all unsent responses, in bytes.
pub const DEFAULT_RESPONSE_MEMORY: usize = 512 << 20;

/// A client that accepts no bytes for this long counts as slow.
const SLOW_AFTER: Duration = Duration::from_secs(5);
/// The shortest interval between two searches for slow clients: there may be many charges.
const EVICTION_PERIOD: Duration = Duration::from_millis(250);

/// The memory budget that responses share. Clones share one budget.
#[derive(Clone)]
pub struct ResponseBudget(Arc<Inner>);

struct Inner {
    all: usize,
    used: AtomicUsize,
    next_id: AtomicU64,
    charges: Mutex<Charges>,
}

#[derive(Default)]
struct Charges {
    by_id: HashMap<u64, (usize, Cutoff)>,
    evicted_at: Option<Instant>,
}

impl Default for ResponseBudget {
    fn default() -> ResponseBudget {
        ResponseBudget::new(DEFAULT_RESPONSE_MEMORY)
    }
}

/// The budget is used up.
#[derive(Debug)]
pub(crate) struct UsedUp;

impl ResponseBudget {
    /// A budget of `bytes` bytes.
    pub fn new(bytes: usize) -> ResponseBudget {
        ResponseBudget(Arc::new(Inner {
            all: bytes.max(1),
            used: AtomicUsize::new(0),
            next_id: AtomicU64::new(0),
            charges: Mutex::default(),
        }))
    }

    /// Whether `bytes` bytes fit. If not, cuts off slow clients, so that their memory is returned.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let inner = &self.0;
        // A response larger than the whole budget takes the whole budget.
        let has_room = inner.used.load(Ordering::Relaxed) + bytes.min(inner.all) <= inner.all;
        if !has_room {
            inner.evict(bytes);
        }
        has_room
    }

    /// Charges bytes until they are dropped.
    ///
    /// # Errors
    /// When there is no room for them.
    pub(crate) fn charge(&self, bytes: Bytes, cutoff: &Cutoff) -> Result<Bytes, UsedUp> {
        match self.has_room(bytes.len()) {
            true => Ok(self.charge_anyway(bytes, cutoff)),
            false => Err(UsedUp),
        }
    }

    /// Charges bytes until they are dropped, whether there is room for them or not.
    pub(crate) fn charge_anyway(&self, bytes: Bytes, cutoff: &Cutoff) -> Bytes {
        let inner = self.0.clone();
        let size = bytes.len().min(inner.all);
        let id = inner.next_id.fetch_add(1, Ordering::Relaxed);
        inner.used.fetch_add(size, Ordering::Relaxed);
        cutoff.charged();
        inner.charges.lock().by_id.insert(id, (size, cutoff.clone()));
        Bytes::from_owner(Charged { bytes, id, inner })
    }

    /// How many bytes are charged.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }
}

impl Inner {
    /// Cuts off the clients that accepted no bytes for the longest time, until they return `bytes` bytes.
    fn evict(&self, bytes: usize) {
        let now = Instant::now();
        let mut charges = self.charges.lock();
        if charges.evicted_at.is_some_and(|at| now < at + EVICTION_PERIOD) {
            return;
        }
        charges.evicted_at = Some(now);
        let slow = charges.by_id.values().filter_map(|(size, cutoff)| {
            let since = cutoff.stalled_since().filter(|since| now >= *since + SLOW_AFTER)?;
            Some((since, *size, cutoff.clone()))
        });
        let mut slow: Vec<_> = slow.collect();
        drop(charges);
        slow.sort_by_key(|(since, ..)| *since);
        let mut freed = 0;
        for (_, size, cutoff) in slow {
            if freed >= bytes {
                break;
            }
            freed += size;
            cutoff.cut();
        }
        tracing::warn!(freed, "unsent responses take too much memory; slow clients are cut off");
    }
}

/// Bytes with their charge, which is returned on drop.
struct Charged {
    bytes: Bytes,
    id: u64,
    inner: Arc<Inner>,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        let charge = self.inner.charges.lock().by_id.remove(&self.id);
        if let Some((size, cutoff)) = charge {
            self.inner.used.fetch_sub(size, Ordering::Relaxed);
            cutoff.released();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_slowest_reader_is_cut_off_when_there_is_no_room() {
        let budget = ResponseBudget::new(1000);
        let [first, second, third] = [(); 3].map(|()| Cutoff::for_tests());
        let body = |size: usize| Bytes::from(vec![b'x'; size]);
        let one = budget.charge(body(400), &first).unwrap();
        first.handed_over();
        tokio::time::advance(Duration::from_secs(1)).await;
        let two = budget.charge(body(400), &second).unwrap();
        second.handed_over();
        assert!(budget.charge(body(400), &third).is_err());
        assert!(first.polled().is_ok() && second.polled().is_ok(), "neither is slow");
        tokio::time::advance(SLOW_AFTER).await;
        assert!(!budget.has_room(400));
        assert!(first.polled().is_err() && second.polled().is_ok());
        let part = one.slice(..1);
        drop(one);
        assert_eq!(budget.used(), 800, "a part of the body keeps it");
        drop(part);
        assert_eq!(budget.used(), 400);
        drop(budget.charge(body(600), &third).unwrap());
        drop(two);
        // A response larger than the budget takes the whole budget.
        let all = budget.charge(body(5000), &third).unwrap();
        assert!(!budget.has_room(1));
        drop(all);
        assert_eq!(budget.used(), 0);
    }
}
