//! The writes of this process whose events have not arrived: an event of etcd brings the stored bytes back, and with
//! them the payload is found that was written.
//!
//! A write that was given up, or is acknowledged before its event, is forgotten; its event has only the stored bytes.

use crate::{EventKind, Key, Payload, StorageEvent};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The writes in flight.
#[derive(Default)]
pub(super) struct OwnWrites {
    /// The payloads by key; several writers of one key may wait at once.
    in_flight: Mutex<HashMap<Key, Vec<(u64, Payload)>>>,
    next: AtomicU64,
}

/// A write in flight. Dropping it forgets the write.
pub(super) struct OwnWrite {
    writes: Arc<OwnWrites>,
    key: Key,
    number: u64,
}

impl OwnWrites {
    /// Registers a write until the guard is dropped; `None` for a payload that has nothing but its stored form.
    pub(super) fn begin(self: &Arc<Self>, key: &Key, payload: &Payload) -> Option<OwnWrite> {
        if !payload.is_decoded() {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.in_flight.lock().entry(key.clone()).or_default().push((number, payload.clone()));
        Some(OwnWrite { writes: Arc::clone(self), key: key.clone(), number })
    }

    /// Replaces the values of events by the payloads that this process wrote.
    pub(super) fn restore(&self, events: &mut [StorageEvent]) {
        let in_flight = self.in_flight.lock();
        if in_flight.is_empty() {
            return;
        }
        for event in events {
            let StorageEvent::Write { kind: EventKind::Create | EventKind::Update, kv, .. } = event else {
                continue;
            };
            let of_key = in_flight.get(&kv.key).into_iter().flatten();
            // Equal stored bytes under one key are the same value, whichever write they come from.
            let written = of_key.map(|(_, payload)| payload).find(|own| *own.stored_form() == kv.value.bytes);
            if let Some(written) = written {
                kv.value = written.clone();
            }
        }
    }
}

impl Drop for OwnWrite {
    fn drop(&mut self) {
        let mut in_flight = self.writes.in_flight.lock();
        if let Some(of_key) = in_flight.get_mut(&self.key) {
            of_key.retain(|(number, _)| *number != self.number);
            if of_key.is_empty() {
                in_flight.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyValue, Revision, ValueState};

    fn event(kind: EventKind, key: &str, stored: &str) -> StorageEvent {
        let kv = KeyValue {
            key: Key::new(key),
            value: stored.to_owned().into(),
            state: ValueState::Current,
            create_revision: Revision(2),
            mod_revision: Revision(3),
        };
        StorageEvent::Write { kind, revision: Revision(3), kv }
    }

    fn restored(writes: &OwnWrites, kind: EventKind, key: &str, stored: &str) -> Option<String> {
        let mut events = [event(kind, key, stored)];
        writes.restore(&mut events);
        let [StorageEvent::Write { kv, .. }] = events else { panic!("a write") };
        kv.value.stored.is_some().then(|| String::from_utf8_lossy(&kv.value).into_owned())
    }

    #[test]
    fn the_event_of_a_write_in_flight_has_its_payload() {
        let writes = Arc::new(OwnWrites::default());
        let payload = |bytes: &str, stored: &str| Payload {
            stored: Some(stored.to_owned().into()),
            ..Payload::from(bytes.to_owned())
        };
        let key = Key::new("/a");
        assert!(writes.begin(&key, &"only bytes".into()).is_none());
        let one = writes.begin(&key, &payload("one", "1"));
        let two = writes.begin(&key, &payload("two", "2"));
        assert_eq!(restored(&writes, EventKind::Update, "/a", "1").as_deref(), Some("one"));
        assert_eq!(restored(&writes, EventKind::Create, "/a", "2").as_deref(), Some("two"));
        for (kind, key, stored) in
            [(EventKind::Update, "/a", "3"), (EventKind::Update, "/b", "1"), (EventKind::Delete, "/a", "1")]
        {
            assert_eq!(restored(&writes, kind, key, stored), None, "{kind:?} {key} {stored}");
        }
        drop(one);
        assert_eq!(restored(&writes, EventKind::Update, "/a", "1"), None);
        drop(two);
        assert!(writes.in_flight.lock().is_empty());
    }
}
