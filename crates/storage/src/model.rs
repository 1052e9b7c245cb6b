//! Tests engines against a model: random operations, and a map that gives their expected results.

use crate::{
    EmbeddedOptions, EmbeddedStorage, EventKind, Key, ListRequest, MemoryStorage, Revision, Storage,
    StorageError, StorageEvent, WatchRequest, WriteError,
};
use bytes::Bytes;
use proptest::prelude::*;
use std::{collections::BTreeMap, future::Future, sync::Arc};

#[derive(Debug, Clone)]
enum Operation {
    Create {
        key: u8,
    },
    /// `off` is the distance of the expected revision from the current one; zero matches.
    Update {
        key: u8,
        off: u8,
    },
    Delete {
        key: u8,
        off: u8,
    },
    /// `back` is the distance from the current revision.
    List {
        back: u8,
        limit: u8,
        start_after: Option<u8>,
    },
    Watch {
        back: u8,
    },
    Compact {
        back: u8,
    },
    Reopen,
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = 0..6_u8;
    let off = prop_oneof![4 => Just(0), 1 => 1..3_u8];
    prop_oneof![
        4 => key.clone().prop_map(|key| Operation::Create { key }),
        4 => (key.clone(), off.clone()).prop_map(|(key, off)| Operation::Update { key, off }),
        3 => (key.clone(), off).prop_map(|(key, off)| Operation::Delete { key, off }),
        3 => (0..20_u8, 0..4_u8, proptest::option::of(key))
            .prop_map(|(back, limit, start_after)| Operation::List { back, limit, start_after }),
        2 => (0..20_u8).prop_map(|back| Operation::Watch { back }),
        1 => (0..10_u8).prop_map(|back| Operation::Compact { back }),
        1 => Just(Operation::Reopen),
    ]
}

/// A pair as the model has it: value, create revision, modification revision.
type Pair = (Bytes, Revision, Revision);

/// All past states: the simplest model that can be correct.
struct Model {
    states: Vec<BTreeMap<Key, Pair>>,
    writes: Vec<(EventKind, Key, Pair)>,
    compacted: Revision,
}

impl Model {
    fn new() -> Model {
        Model { states: vec![BTreeMap::new()], writes: Vec::new(), compacted: Revision(0) }
    }

    /// An empty store is at revision 1.
    fn revision(&self) -> Revision {
        Revision(self.states.len() as u64)
    }

    fn state(&self, revision: Revision) -> &BTreeMap<Key, Pair> {
        &self.states[revision.0 as usize - 1]
    }

    fn current(&self, key: &Key) -> Option<&Pair> {
        self.state(self.revision()).get(key)
    }

    fn back(&self, revisions: u8) -> Revision {
        Revision(self.revision().0.saturating_sub(u64::from(revisions)).max(1))
    }

    fn apply(&mut self, kind: EventKind, key: &Key, pair: Pair) {
        let mut state = self.state(self.revision()).clone();
        match kind {
            EventKind::Delete => state.remove(key),
            EventKind::Create | EventKind::Update => state.insert(key.clone(), pair.clone()),
        };
        self.states.push(state);
        self.writes.push((kind, key.clone(), pair));
    }
}

/// Asserts that a write returned the conflict with `current`.
fn assert_conflict(result: Result<Revision, WriteError>, current: Option<&Pair>) {
    let Err(WriteError::Conflict { current: told }) = result else { panic!("{result:?}") };
    assert_eq!(told.map(|kv| (kv.value.bytes, kv.create_revision, kv.mod_revision)), current.cloned());
}

async fn run(operations: &[Operation], open: impl Fn(Option<Arc<dyn Storage>>) -> Arc<dyn Storage>) {
    let mut storage = open(None);
    let mut model = Model::new();
    for (number, operation) in operations.iter().enumerate() {
        let value = Bytes::from(format!("value {number}"));
        step(&mut storage, &mut model, operation, value, &open).await;
        assert_eq!(storage.current_revision().await, Ok(model.revision()), "after {operation:?}");
    }
    check_list(&*storage, &model, model.revision(), 0, None).await;
    check_watch(&*storage, &model, model.compacted.max(Revision(1))).await;
    storage.close().await.unwrap();
}

async fn step(
    storage: &mut Arc<dyn Storage>,
    model: &mut Model,
    operation: &Operation,
    value: Bytes,
    open: &impl Fn(Option<Arc<dyn Storage>>) -> Arc<dyn Storage>,
) {
    let name = |key: u8| Key::new(format!("/r/{key}"));
    let next = Revision(model.revision().0 + 1);
    match *operation {
        Operation::Create { key } => {
            let key = name(key);
            let result = storage.create(&key, value.clone().into(), None).await;
            if model.current(&key).is_some() {
                assert!(matches!(result, Err(WriteError::KeyExists)), "{result:?}");
            } else {
                assert_eq!(result.unwrap(), next);
                model.apply(EventKind::Create, &key, (value, next, next));
            }
        }
        Operation::Update { key, off } => {
            let key = name(key);
            let current = model.current(&key).cloned();
            let expected = Revision(current.as_ref().map_or(0, |pair| pair.2.0) + u64::from(off));
            let result = storage.update(&key, value.clone().into(), expected, None).await;
            match current {
                Some((_, created, at)) if at == expected => {
                    assert_eq!(result.unwrap(), next);
                    model.apply(EventKind::Update, &key, (value, created, next));
                }
                current => assert_conflict(result, current.as_ref()),
            }
        }
        Operation::Delete { key, off } => {
            let key = name(key);
            let current = model.current(&key).cloned();
            let expected = Revision(current.as_ref().map_or(0, |pair| pair.2.0) + u64::from(off));
            let result = storage.delete(&key, expected).await;
            match current {
                Some(pair) if pair.2 == expected => {
                    assert_eq!(result.unwrap(), next);
                    model.apply(EventKind::Delete, &key, pair);
                }
                current => assert_conflict(result, current.as_ref()),
            }
        }
        Operation::List { back, limit, start_after } => {
            check_list(&**storage, model, model.back(back), limit.into(), start_after.map(name)).await;
        }
        Operation::Watch { back } => check_watch(&**storage, model, model.back(back)).await,
        Operation::Compact { back } => {
            let revision = model.back(back);
            storage.compact(revision).await.unwrap();
            model.compacted = model.compacted.max(revision);
        }
        Operation::Reopen => {
            let old = std::mem::replace(storage, Arc::new(MemoryStorage::new()));
            *storage = open(Some(old));
        }
    }
}

async fn check_list(
    storage: &dyn Storage,
    model: &Model,
    revision: Revision,
    limit: usize,
    start_after: Option<Key>,
) {
    let prefix = "/r/".to_owned();
    let request = ListRequest { prefix, start_after: start_after.clone(), limit, revision: Some(revision) };
    let result = storage.get_list(request).await;
    if revision < model.compacted {
        let compacted = model.compacted;
        assert_eq!(result.map(|_| ()).unwrap_err(), StorageError::Compacted { compacted });
        return;
    }
    let response = result.unwrap();
    let after = |key: &Key| start_after.as_ref().is_none_or(|start| key > start);
    let all: Vec<_> = model.state(revision).iter().filter(|(key, _)| after(key)).collect();
    let wanted = if limit == 0 { all.len() } else { limit.min(all.len()) };
    assert_eq!(response.more, wanted < all.len());
    assert_eq!(response.items.len(), wanted);
    for (kv, (key, pair)) in response.items.into_iter().zip(all) {
        assert_eq!((&kv.key, &(kv.value.bytes, kv.create_revision, kv.mod_revision)), (key, pair));
    }
}

async fn check_watch(storage: &dyn Storage, model: &Model, after: Revision) {
    let result = storage.watch(WatchRequest { prefix: "/r/".to_owned(), after }).await;
    if after < model.compacted {
        let compacted = model.compacted;
        assert_eq!(result.map(|_| ()).unwrap_err(), StorageError::Compacted { compacted });
        return;
    }
    let mut stream = result.unwrap();
    storage.request_progress().await.unwrap();
    let mut expected = (after.0 + 1..).zip(model.writes.iter().skip(after.0 as usize - 1));
    'events: loop {
        for event in stream.next_batch().await.unwrap() {
            match event {
                StorageEvent::Write { kind, revision, kv } => {
                    let (at, write) = expected.next().unwrap();
                    assert_eq!(revision.0, at);
                    assert_eq!((kind, kv.key, (kv.value.bytes, kv.create_revision, kv.mod_revision)), *write);
                }
                StorageEvent::Progress(revision) => {
                    assert_eq!(revision, model.revision());
                    break 'events;
                }
                StorageEvent::Error(error) => panic!("{error}"),
            }
        }
    }
    assert_eq!(expected.next(), None, "events that did not come");
}

fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn memory_is_like_the_model(operations in proptest::collection::vec(operation(), 1..80)) {
        block_on(run(&operations, |old| old.unwrap_or_else(|| Arc::new(MemoryStorage::new()))));
    }

    #[test]
    fn embedded_is_like_the_model(operations in proptest::collection::vec(operation(), 1..80)) {
        let directory = tempfile::tempdir().unwrap();
        block_on(run(&operations, |old| {
            drop(old);
            Arc::new(EmbeddedStorage::open(directory.path(), EmbeddedOptions::default()).unwrap())
        }));
    }
}
