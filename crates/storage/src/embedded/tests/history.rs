//! The expected contents of a store: the history of all writes, as their writers recorded it.

use super::*;
use crate::{EventKind, KeyValue, StorageEvent, WatchStream};
use std::collections::BTreeMap;

/// A write as a watch event.
pub(super) type Event = (EventKind, KeyValue);

/// All writes of a store in order, from its first one or from where the history was cut.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    /// The state before `events`,
    base: BTreeMap<Key, KeyValue>,
    /// at this revision.
    base_at: Revision,
    pub(super) events: BTreeMap<Revision, Event>,
}

impl History {
    /// Reads the events of a watch up to `until`.
    pub(super) async fn follow(&mut self, stream: &mut WatchStream, until: Revision) {
        while self.newest() < until {
            for event in stream.next_batch().await.expect("the watch is open") {
                match event {
                    StorageEvent::Write { kind, revision, kv } => {
                        assert_eq!(revision.0, self.newest().0 + 1, "a hole in what a watch delivers");
                        self.events.insert(revision, (kind, kv));
                    }
                    StorageEvent::Progress(_) => {}
                    StorageEvent::Error(error) => panic!("{error}"),
                }
            }
        }
    }

    /// Resumes a watch after the last event, and reads the rest of the store's history.
    pub(super) async fn resume(&mut self, storage: &EmbeddedStorage) {
        let after = self.newest();
        let mut stream = storage.watch(WatchRequest { prefix: String::new(), after }).await.unwrap();
        self.follow(&mut stream, storage.current_revision().await.unwrap()).await;
    }

    /// Revision 1 is the empty store.
    pub(super) fn newest(&self) -> Revision {
        let newest = self.events.last_key_value().map_or(self.base_at, |(revision, _)| *revision);
        newest.max(Revision(1))
    }

    /// The state at a revision.
    pub(super) fn at(&self, at: Revision) -> BTreeMap<Key, KeyValue> {
        let mut state = self.base.clone();
        for (kind, kv) in self.events.range(..=at).map(|(_, event)| event) {
            match kind {
                EventKind::Create | EventKind::Update => state.insert(kv.key.clone(), kv.clone()),
                EventKind::Delete => state.remove(&kv.key),
            };
        }
        state
    }

    fn state(&self, at: Revision) -> Vec<KeyValue> {
        self.at(at).into_values().collect()
    }

    /// The number of live keys of a prefix at the end.
    pub(super) fn alive(&self, prefix: &str) -> usize {
        self.at(self.newest()).keys().filter(|key| key.as_str().starts_with(prefix)).count()
    }

    /// Keeps only the state at a revision and the later events. Returns whether that is less than before.
    pub(super) fn forget(&mut self, compacted: Revision) -> bool {
        let less = compacted > self.base_at;
        self.base = self.at(compacted);
        self.base_at = compacted;
        self.events.retain(|at, _| *at > compacted);
        less
    }

    /// Checks that a store has this history up to some write not before `acknowledged`, complete, as far as it is not
    /// compacted, and that its revisions continue from there. Returns the revision up to which it has the history.
    pub(super) async fn check(
        &self,
        storage: &EmbeddedStorage,
        acknowledged: Revision,
        what: &str,
    ) -> Revision {
        let newest = storage.current_revision().await.unwrap();
        assert!(newest >= acknowledged, "{what}: {acknowledged} was acknowledged, the newest is {newest}");
        assert!(newest <= self.newest(), "{what}: {newest} was never written");
        let compacted = storage.shared.state.read().compacted;
        assert!(compacted <= newest && compacted >= self.base_at, "{what}: compacted at {compacted}");
        for at in [compacted.max(Revision(1)), Revision(compacted.0.midpoint(newest.0).max(1)), newest] {
            let listed = storage.get_list(ListRequest { revision: Some(at), ..list_all() }).await;
            let listed = listed.unwrap_or_else(|error| panic!("{what}: the list at {at}: {error}"));
            assert!(listed.items == self.state(at), "{what}: the list at {at} of {newest}");
        }
        let request = WatchRequest { prefix: String::new(), after: compacted };
        let mut stream = storage.watch(request).await.unwrap();
        let mut told = History { base_at: compacted, ..History::default() };
        told.follow(&mut stream, newest).await;
        let differs = told.events.iter().find(|(at, event)| self.events.get(at) != Some(event));
        assert!(differs.is_none(), "{what}: {differs:?}");
        newest
    }
}

/// A value that identifies its write and is unlike any other. Every second one compresses to about half of its size.
pub(super) fn value(writer: u64, number: u64, size: usize) -> Bytes {
    let value = format!("{writer} {number} ").into_bytes();
    if (writer + number).is_multiple_of(2) {
        let noise = value_of_noise(value, size.div_ceil(2));
        return noise.iter().copied().cycle().take(size.max(noise.len())).collect();
    }
    value_of_noise(value, size).into()
}

fn value_of_noise(mut value: Vec<u8>, size: usize) -> Vec<u8> {
    let mut byte = crc32fast::hash(&value);
    value.resize_with(size.max(value.len()), || {
        byte = byte.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        byte.to_be_bytes()[0]
    });
    value
}
