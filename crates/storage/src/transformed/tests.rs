use super::*;
use crate::{
    EmbeddedOptions, EmbeddedStorage, EventKind, MemoryStorage, TransformError, contract::StorageFactory,
};
use bytes::Bytes;

/// Stores `mark` and the value with every bit inverted; a value with the other known mark is stale, any other
/// unreadable.
struct Turned {
    mark: u8,
}

fn turned(value: &[u8]) -> impl Iterator<Item = u8> {
    value.iter().map(|byte| !byte)
}

impl ValueTransformer for Turned {
    fn to_storage<'a>(&'a self, _: &'a Key, value: Bytes) -> BoxFuture<'a, Result<Bytes, TransformError>> {
        Box::pin(async move {
            match &value[..] {
                b"refused" => Err(TransformError("refused".to_owned())),
                value => Ok(std::iter::once(self.mark).chain(turned(value)).collect()),
            }
        })
    }

    fn from_storage<'a>(
        &'a self,
        _: &'a Key,
        stored: Bytes,
    ) -> BoxFuture<'a, Result<Transformed, TransformError>> {
        Box::pin(async move {
            // Yields, so that a dropped call is dropped in the middle.
            tokio::task::yield_now().await;
            match stored.split_first() {
                Some((mark @ (b'1' | b'2'), value)) => Ok(Transformed {
                    value: turned(value).collect::<Bytes>().into(),
                    stale: *mark != self.mark,
                }),
                _ => Err(TransformError("no mark".to_owned())),
            }
        })
    }
}

fn over(engine: &Arc<dyn Storage>, marks: &[u8]) -> TransformedStorage {
    let transformer = |mark: &u8| Arc::new(Turned { mark: *mark }) as Arc<dyn ValueTransformer>;
    TransformedStorage::new(engine.clone(), marks.iter().map(transformer).collect())
}

struct Transformed2;

impl StorageFactory for Transformed2 {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Storage>> {
        Box::pin(async {
            let engine: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
            Arc::new(over(&engine, b"12")) as Arc<dyn Storage>
        })
    }
}

crate::storage_contract!(Transformed2);

fn key(text: &str) -> Key {
    Key::new(text)
}

async fn value(storage: &dyn Storage, name: &str) -> (Bytes, ValueState) {
    let kv = storage.get(&key(name)).await.unwrap().kv.unwrap();
    (kv.value.bytes, kv.state)
}

#[tokio::test]
async fn values_go_through_the_row_and_back_and_tell_when_they_are_stale() {
    let engine: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let one = over(&engine, b"1");
    let revision = one.create(&key("/a"), "x".into(), None).await.unwrap();
    assert_eq!(value(&*engine, "/a").await.0, [b'1', !b'x'].as_slice());
    assert_eq!(value(&one, "/a").await, ("x".into(), ValueState::Current));
    let two = over(&engine, b"2");
    assert_eq!(value(&two, "/a").await, ("x".into(), ValueState::Stale));
    let Err(WriteError::Conflict { current: Some(current) }) =
        two.update(&key("/a"), "y".into(), Revision(1), None).await
    else {
        panic!("an update of another revision")
    };
    assert_eq!((current.value.bytes, current.state), ("x".into(), ValueState::Stale));
    two.update(&key("/a"), "x".into(), revision, None).await.unwrap();
    assert_eq!(value(&two, "/a").await, ("x".into(), ValueState::Current));
    let row = over(&engine, b"12");
    row.create(&key("/b"), "x".into(), None).await.unwrap();
    assert_eq!(value(&*engine, "/b").await.0, [b'2', !b'1', b'x'].as_slice());
    assert_eq!(value(&row, "/b").await, ("x".into(), ValueState::Current));
    assert_eq!(value(&over(&engine, b"22"), "/b").await.1, ValueState::Stale);
}

#[tokio::test]
async fn a_bad_value_comes_as_stored_and_leaves_the_others_alone() {
    let engine: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let storage = over(&engine, b"1");
    let mut stream = storage.watch(WatchRequest { prefix: "/".into(), after: Revision(0) }).await.unwrap();
    storage.create(&key("/a"), "1".into(), None).await.unwrap();
    engine.create(&key("/b"), "bad".into(), None).await.unwrap();
    storage.create(&key("/c"), "3".into(), None).await.unwrap();
    let bad = ValueState::Unreadable(ReadError::Transform(TransformError("no mark".to_owned())));
    let expected: Vec<(&str, Bytes, ValueState)> = vec![
        ("/a", "1".into(), ValueState::Current),
        ("/b", "bad".into(), bad),
        ("/c", "3".into(), ValueState::Current),
    ];
    let request = ListRequest { prefix: "/".into(), start_after: None, limit: 0, revision: None };
    let listed = storage.get_list(request).await.unwrap().items;
    let listed: Vec<_> =
        listed.iter().map(|kv| (kv.key.as_str(), kv.value.bytes.clone(), kv.state.clone())).collect();
    assert_eq!(listed, expected);
    let mut watched = Vec::new();
    while watched.len() < 3 {
        for event in stream.next_batch().await.unwrap() {
            if let StorageEvent::Write { kv, .. } = event {
                watched.push((kv.key.to_string(), kv.value.bytes, kv.state));
            }
        }
    }
    assert!(
        watched.iter().map(|(key, value, state)| (key.as_str(), value.clone(), state.clone())).eq(expected)
    );
    let refused = storage.create(&key("/d"), "refused".into(), None).await;
    assert!(matches!(refused, Err(WriteError::Transform(_))), "{refused:?}");
    assert!(storage.get(&key("/d")).await.unwrap().kv.is_none());
}

#[tokio::test]
async fn the_event_of_an_own_write_has_the_payload_that_was_written() {
    let engine: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let storage = over(&engine, b"1");
    let mut stream = storage.watch(WatchRequest { prefix: "/".into(), after: Revision(0) }).await.unwrap();
    let written = Payload { decoded: Some(Arc::new(7_u8)), ..Payload::from(vec![7; 100]) };
    storage.create(&key("/a"), written.clone(), None).await.unwrap();
    let next = async |stream: &mut WatchStream| match stream.next_batch().await.unwrap().pop() {
        Some(StorageEvent::Write { kind: EventKind::Create, kv, .. }) => kv.value,
        event => panic!("{event:?}"),
    };
    let event = next(&mut stream).await;
    assert_eq!((event.as_ptr(), event.decoded::<u8>()), (written.as_ptr(), Some(Arc::new(7))));
    assert_eq!(event.decoded::<u16>(), None);
    assert_eq!(event.stored, None, "only the engine needs it");
    let mut later = storage.watch(WatchRequest { prefix: "/".into(), after: Revision(0) }).await.unwrap();
    let history = next(&mut later).await;
    assert_eq!((&history, history.decoded.is_none()), (&written, true), "history has only stored bytes");
}

#[tokio::test]
async fn the_event_of_an_own_delete_has_the_value_that_its_caller_had() {
    let directory = tempfile::tempdir().unwrap();
    let engine = EmbeddedStorage::open(directory.path(), EmbeddedOptions::default()).unwrap();
    let storage = over(&(Arc::new(engine) as Arc<dyn Storage>), b"1");
    let written = Payload::from(vec![7; 100]);
    let created = storage.create(&key("/a"), written.clone(), None).await.unwrap();
    let request = WatchRequest { prefix: "/".into(), after: created };
    let mut live = storage.watch(request.clone()).await.unwrap();
    let existing = Payload::from(vec![7; 100]);
    storage.delete_existing(&key("/a"), created, existing.clone()).await.unwrap();
    let next = async |stream: &mut WatchStream| match stream.next_batch().await.unwrap().pop() {
        Some(StorageEvent::Write { kind: EventKind::Delete, kv, .. }) => kv,
        event => panic!("{event:?}"),
    };
    let event = next(&mut live).await;
    assert_eq!(
        (event.value.as_ptr(), event.state),
        (existing.as_ptr(), ValueState::Current),
        "nothing was read"
    );
    let history = next(&mut storage.watch(request).await.unwrap()).await;
    assert_eq!((history.value, history.state), (written, ValueState::Current));
}

#[tokio::test]
async fn another_storage_over_the_engine_reads_the_stored_form() {
    let engine: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    for transformers in [&b""[..], b"1"] {
        let (writer, reader) = (over(&engine, transformers), over(&engine, transformers));
        let after = engine.current_revision().await.unwrap();
        let mut stream = reader.watch(WatchRequest { prefix: "/".into(), after }).await.unwrap();
        let written = Payload { decoded: Some(Arc::new(7_u8)), ..Payload::from(vec![7; 100]) };
        let key = key(&format!("/{}", transformers.len()));
        writer.create(&key, written.clone(), None).await.unwrap();
        match stream.next_batch().await.unwrap().pop() {
            Some(StorageEvent::Write { kv, .. }) => {
                assert_eq!((&kv.value, kv.value.decoded::<u8>()), (&written, None));
            }
            event => panic!("{event:?}"),
        }
    }
}

#[tokio::test]
async fn a_stored_form_that_the_writer_has_made_skips_the_first_transformer() {
    let engine: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let made = Payload { stored: Some("made".into()), ..Payload::from("x") };
    over(&engine, b"12").create(&key("/a"), made, None).await.unwrap();
    let expected: Bytes = std::iter::once(b'2').chain(turned(b"made")).collect();
    assert_eq!(value(&*engine, "/a").await.0, expected);
}
