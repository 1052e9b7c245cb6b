//! Bounds the bytes of the events that wait to be written or sent.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most bytes of events that wait for one backend. An event may have two objects of several megabytes.
const BYTES: usize = 256 << 20;
/// The bytes of a permit.
const UNIT: usize = 1024;

/// The room for waiting events. A place in it is given back when it is dropped.
pub(crate) struct Room(Arc<Semaphore>);

impl Room {
    pub(crate) fn new() -> Room {
        Room(Arc::new(Semaphore::new(BYTES / UNIT)))
    }

    /// The place for events of this size; `None` when there is no room.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        self.0.clone().try_acquire_many_owned(permits(bytes)).ok()
    }

    /// Waits for the place for events of this size; `None` when the room is closed.
    pub(crate) async fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        self.0.clone().acquire_many_owned(permits(bytes)).await.ok()
    }

    /// Gives no more places.
    pub(crate) fn close(&self) {
        self.0.close();
    }
}

/// More than the whole room is as much as the room.
fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT).min(BYTES / UNIT)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_share_a_room_of_bytes() {
        let room = Room::new();
        let most = room.try_take(BYTES - UNIT).unwrap();
        let last = room.try_take(1);
        assert!(last.is_some() && room.try_take(1).is_none());
        drop(most);
        assert!(room.try_take(BYTES).is_none() && room.try_take(BYTES - UNIT).is_some());
        drop(last);
        assert!(room.try_take(2 * BYTES).is_some(), "what is larger than the room waits alone");
    }
}
