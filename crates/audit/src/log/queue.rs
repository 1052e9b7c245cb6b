//! The queue between requests and the thread that writes.

use crate::room::Room;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use std::{collections::VecDeque, io, mem, sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::Instant,
};

/// The largest number of queued writes.
pub(super) const CAPACITY: usize = 1024;
/// The longest time for which a write that is not urgent is queued.
const NAP: Duration = Duration::from_millis(10);

/// The writes to do, in order, and the progress of the thread that does them.
pub(super) struct Queue {
    slots: Arc<Semaphore>,
    room: Room,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    writes: VecDeque<Write>,
    /// Whether one of the writes is urgent.
    is_urgent: bool,
    /// Whether somebody will wake the thread for it.
    is_claimed: bool,
    /// Whether the thread sleeps until it is woken. Otherwise it writes, or takes a nap.
    is_asleep: bool,
    /// Whether there will be no more writes.
    is_closed: bool,
    /// The start of the write in progress.
    busy_since: Option<Instant>,
}

/// Events to write, and the channel for the outcome.
pub(super) struct Write {
    pub(super) events: Vec<Bytes>,
    pub(super) done: oneshot::Sender<io::Result<()>>,
    _slot: Slot,
}

/// A place in the queue, and the room for the events.
pub(super) struct Slot {
    _place: OwnedSemaphorePermit,
    _room: OwnedSemaphorePermit,
}

impl Write {
    /// The size of its events, in bytes.
    pub(super) fn size(&self) -> usize {
        size(&self.events)
    }
}

impl Queue {
    pub(super) fn new() -> Queue {
        let slots = Arc::new(Semaphore::new(CAPACITY));
        Queue { slots, room: Room::new(), state: Mutex::default(), wake: Condvar::new() }
    }

    /// Waits for a place in the queue; `None` when the thread has ended.
    pub(super) async fn slot(&self, events: &[Bytes]) -> Option<Slot> {
        let place = self.slots.clone().acquire_owned().await.ok()?;
        Some(Slot { _place: place, _room: self.room.take(size(events)).await? })
    }

    /// A place in the queue; `None` when it is full, or the thread has ended.
    pub(super) fn try_slot(&self, events: &[Bytes]) -> Option<Slot> {
        let place = self.slots.clone().try_acquire_owned().ok()?;
        Some(Slot { _place: place, _room: self.room.try_take(size(events))? })
    }

    /// Queues a write, and returns the receiver of its outcome. The thread does it when it is [roused](Queue::rouse) for
    /// an urgent one, or when its nap is over.
    pub(super) fn push(
        &self,
        slot: Slot,
        events: Vec<Bytes>,
        is_urgent: bool,
    ) -> oneshot::Receiver<io::Result<()>> {
        let (done, outcome) = oneshot::channel();
        let mut state = self.state.lock();
        state.writes.push_back(Write { events, done, _slot: slot });
        state.is_urgent |= is_urgent;
        let was_asleep = mem::take(&mut state.is_asleep);
        drop(state);
        if was_asleep {
            self.wake.notify_one();
        }
        outcome
    }

    /// Whether the caller has to [rouse](Queue::rouse) the thread for an urgent write; others need not then.
    pub(super) fn claim_rousing(&self) -> bool {
        let mut state = self.state.lock();
        state.is_urgent && !mem::replace(&mut state.is_claimed, true)
    }

    /// Wakes the thread if an urgent write is queued.
    pub(super) fn rouse(&self) {
        let mut state = self.state.lock();
        state.is_claimed = false;
        let is_urgent = state.is_urgent;
        drop(state);
        if is_urgent {
            self.wake.notify_one();
        }
    }

    /// Takes all queued writes. Blocks until there are some; returns false when the queue is closed and empty.
    #[expect(clippy::disallowed_methods, reason = "no runtime owns the thread that writes")]
    pub(super) fn take(&self, writes: &mut VecDeque<Write>) -> bool {
        let mut state = self.state.lock();
        state.busy_since = None;
        while !state.is_urgent && !state.is_closed {
            let is_over = self.wake.wait_for(&mut state, NAP).timed_out();
            if is_over && !state.writes.is_empty() {
                break;
            }
            if is_over {
                state.is_asleep = true;
                self.wake.wait_while(&mut state, |state| state.is_asleep && !state.is_closed);
            }
        }
        state.is_urgent = false;
        mem::swap(&mut state.writes, writes);
        !writes.is_empty()
    }

    /// Notes the start of a write.
    pub(super) fn begin_write(&self) {
        self.state.lock().busy_since = Some(Instant::now());
    }

    /// The start of the write in progress.
    pub(super) fn busy_since(&self) -> Option<Instant> {
        self.state.lock().busy_since
    }

    /// Whether the thread sleeps until it is woken.
    #[cfg(test)]
    pub(super) fn is_asleep(&self) -> bool {
        self.state.lock().is_asleep
    }

    /// Lets the thread end when it has done all writes.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.wake.notify_one();
    }
}

fn size(events: &[Bytes]) -> usize {
    events.iter().map(Bytes::len).sum()
}

/// The thread's end of the queue. When it is dropped, writes fail.
pub(super) struct Receiver(pub(super) Arc<Queue>);

impl Drop for Receiver {
    fn drop(&mut self) {
        self.0.slots.close();
        self.0.room.close();
        self.0.state.lock().writes.clear();
    }
}
