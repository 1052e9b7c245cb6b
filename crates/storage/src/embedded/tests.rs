use super::*;
use crate::{contract::StorageFactory, contract_tests};
use bytes::Bytes;
use std::fs;

mod churn;
mod crash;
mod damage;
mod faults;
mod fixtures;
mod full;
mod history;
mod images;
mod power;
mod snapshot;

struct Embedded(tempfile::TempDir);

impl Embedded {
    fn new() -> Embedded {
        Embedded(tempfile::tempdir().unwrap())
    }

    /// In memory, where the system has such a file system, for tests that open hundreds of stores and lose no real
    /// power: syncs of a busy disk would take most of their time.
    fn fast() -> Embedded {
        let memory = Path::new("/dev/shm");
        Embedded(tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).unwrap())
    }
}

impl StorageFactory for Embedded {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Storage>> {
        Box::pin(async { Arc::new(open(self.0.path())) as Arc<dyn Storage> })
    }
}

fn open(directory: &Path) -> EmbeddedStorage {
    EmbeddedStorage::open(directory, EmbeddedOptions::default()).unwrap()
}

/// Creates a key with a value of this size.
async fn create(storage: &EmbeddedStorage, name: &str, size: usize) -> Result<Revision, WriteError> {
    storage.create(&Key::new(name), noise(name, size).into(), None).await
}

/// Waits until the database has all writes, and the files do not change until the next operation. A second order is
/// answered only after all work that follows from the first.
async fn settled(storage: &EmbeddedStorage) {
    for _ in 0..2 {
        let (reply, answer) = oneshot::channel();
        let until = storage.shared.state.read().revision;
        storage.shared.handover.order(Order::Apply { until, reply });
        // Writers get the error if there was no room.
        let _ = answer.await.unwrap();
    }
}

/// Incompressible bytes that differ from name to name.
fn noise(name: &str, size: usize) -> Bytes {
    let mut random = pintle_fault_vfs::Random::new(u64::from(crc32fast::hash(name.as_bytes())));
    (0..size).map(|_| random.number().to_be_bytes()[0]).collect()
}

/// The batches of a journal's segment: the last revision of each, and its end in the file.
fn batches(segment: &[u8]) -> Vec<(Revision, u64)> {
    use journal::format::{BATCH_HEADER, BatchHeader, SECTOR, SegmentHeader};
    let salt = SegmentHeader::decode(&segment[..SECTOR]).unwrap().salt;
    let (mut batches, mut at) = (Vec::new(), SECTOR);
    while let Some(header) = segment.get(at..).and_then(|bytes| BatchHeader::decode(bytes, salt)) {
        at += (BATCH_HEADER + header.length as usize).next_multiple_of(SECTOR);
        batches.push((header.last(), at as u64));
    }
    batches
}

/// The file of a new store's first segment.
fn first_segment(directory: &Path) -> PathBuf {
    let [_, odd] = journal::paths(directory);
    odd
}

fn list_all() -> ListRequest {
    ListRequest { prefix: String::new(), start_after: None, limit: 0, revision: None }
}

mod contract {
    use super::*;

    crate::storage_contract!(Embedded::new());
    crate::durable_storage_contract!(Embedded::new());
}

/// The contract with the smallest sizes: a checkpoint after every commit, hardly any cache.
mod contract_with_checkpoints {
    use super::*;

    struct Small(Embedded);

    impl StorageFactory for Small {
        fn open(&self) -> BoxFuture<'_, Arc<dyn Storage>> {
            let options =
                EmbeddedOptions { wal_bytes: 1, cache_bytes: 16 * 1024, ..EmbeddedOptions::default() };
            let storage = EmbeddedStorage::open(self.0.0.path(), options).unwrap();
            Box::pin(async { Arc::new(storage) as Arc<dyn Storage> })
        }
    }

    contract_tests!(
        Small(Embedded::new());
        values_come_back_byte_for_byte,
        list_pages_at_a_revision_ignore_later_writes,
        watch_started_among_writes_misses_none,
        compaction_reduces_what_was_rewritten,
        reopen_keeps_history,
        reopen_keeps_compaction,
    );
}

#[tokio::test]
async fn long_history_is_replayed_in_pieces_and_then_goes_live() {
    let factory = Embedded::new();
    let storage = Arc::new(open(factory.0.path()));
    let writers: Vec<_> = (0..50)
        .map(|writer| {
            let storage = Arc::clone(&storage);
            tokio::spawn(async move {
                for object in 0..60 {
                    create(&storage, &format!("/r/{}/{writer}-{object}", object % 2), 10).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    // Now the history is in the database, and not in part in the backlog, which is a piece of its own.
    storage.close().await.unwrap();
    drop(storage);
    let storage = open(factory.0.path());
    for (prefix, expected) in [("", 3_001), ("/r/0/", 1_500), ("/r/1/", 1_500)] {
        let request = WatchRequest { prefix: prefix.to_owned(), after: Revision(1) };
        let mut stream = storage.watch(request).await.unwrap();
        let last = create(&storage, &format!("/live{prefix}"), 10).await.unwrap();
        let (mut count, mut batches, mut newest) = (0, 0, Revision(1));
        storage.request_progress().await.unwrap();
        'events: loop {
            batches += 1;
            for event in stream.next_batch().await.unwrap() {
                match event {
                    crate::StorageEvent::Write { revision, .. } => {
                        assert!(revision > newest, "{revision} after {newest}");
                        newest = revision;
                        count += 1;
                    }
                    crate::StorageEvent::Progress(revision) if revision >= last => break 'events,
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(count, expected, "{prefix}");
        assert!(batches >= 3, "{prefix}: history of {count} events came in {batches} batches");
    }
}

#[tokio::test]
async fn a_compaction_that_was_cut_short_is_finished_at_the_next_start() {
    let factory = Embedded::new();
    let directory = factory.0.path();
    let storage = open(directory);
    let first = create(&storage, "/r/a", 10).await.unwrap();
    storage.delete(&Key::new("/r/a"), first).await.unwrap();
    let last = create(&storage, "/r/b", 10).await.unwrap();
    drop(storage);

    // As if the process had died after it had recorded a compaction and deleted the oldest row.
    let connection = rusqlite::Connection::open(paths::database(directory)).unwrap();
    let mut meta = meta::Meta::read(&connection).unwrap().unwrap().compacted_at(last, last);
    row::delete(&connection, first, first).unwrap();
    meta.kept.remove(first);
    meta.write(&connection).unwrap();
    drop(connection);

    let storage = open(directory);
    assert_eq!(storage.get_list(list_all()).await.unwrap().items.len(), 1);
    let older = storage.get_list(ListRequest { revision: Some(first), ..list_all() }).await;
    assert!(matches!(older, Err(StorageError::Compacted { compacted }) if compacted == last), "{older:?}");
    storage.close().await.unwrap();
    drop(storage);
    let connection = rusqlite::Connection::open(paths::database(directory)).unwrap();
    let rows: i64 = connection.query_row("SELECT count(*) FROM writes", (), |row| row.get(0)).unwrap();
    assert_eq!(rows, 1, "the tombstone is gone");
}

#[tokio::test]
async fn a_list_has_the_compressed_form_of_values_that_are_stored_so() {
    let directory = Embedded::new();
    let storage = open(directory.0.path());
    let text = Bytes::from(r#"{"metadata":{"managedFields":[]}}"#.repeat(30));
    storage.create(&Key::new("/text"), text.clone().into(), None).await.unwrap();
    create(&storage, "/noise", 1000).await.unwrap();
    settled(&storage).await;
    let items = storage.get_list(list_all()).await.unwrap().items;
    let [noise, found] = &items[..] else { panic!("{items:?}") };
    assert!(noise.value.packed.is_none());
    assert_eq!(*found.value, text);
    let packed = found.value.packed.clone().unwrap();
    assert!(packed.memory() < text.len() / 2);
    assert_eq!(packed.unpack(), text);
    // A storage without a transformation for the value passes it on.
    let above = crate::TransformedStorage::new(Arc::new(storage), Vec::new());
    let items = above.get_list(list_all()).await.unwrap().items;
    assert_eq!(items[1].value.packed.as_ref().unwrap().unpack(), text);
}

#[tokio::test]
async fn the_event_of_a_write_has_the_compressed_form_of_what_was_stored() {
    let directory = Embedded::new();
    let storage = open(directory.0.path());
    let mut watch = storage.watch(WatchRequest { prefix: String::new(), after: Revision(1) }).await.unwrap();
    let text = Bytes::from(r#"{"metadata":{"managedFields":[]}}"#.repeat(30));
    storage.create(&Key::new("/text"), text.clone().into(), None).await.unwrap();
    // Its compressed form is not that of the value.
    let other = Payload::new(text.clone(), Some(Bytes::from("x".repeat(1000))), None);
    storage.create(&Key::new("/other"), other, None).await.unwrap();
    let mut payloads = Vec::new();
    while payloads.len() < 2 {
        for event in watch.next_batch().await.unwrap() {
            let crate::StorageEvent::Write { kv, .. } = event else { panic!("{event:?}") };
            payloads.push(kv.value);
        }
    }
    assert_eq!(payloads[0].packed.as_ref().unwrap().unpack(), text);
    assert!(payloads[1].packed.is_none());
}

#[tokio::test]
async fn a_directory_is_open_once() {
    let factory = Embedded::new();
    let directory = factory.0.path().join("not/there/yet");
    let storage = open(&directory);
    let again = EmbeddedStorage::open(&directory, EmbeddedOptions::default()).map(drop);
    assert!(
        matches!(&again, Err(OpenError::Locked { path }) if *path == directory.join("LOCK")),
        "{again:?}"
    );
    storage.close().await.unwrap();
    // A closed store can be opened again while the handle still exists.
    open(&directory);
    assert!(fs::exists(paths::database(&directory)).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_many_write_to_is_begun_again() {
    const WAL_BYTES: u64 = 1 << 20;
    let factory = Embedded::fast();
    let options = EmbeddedOptions { wal_bytes: WAL_BYTES, ..EmbeddedOptions::default() };
    let storage = Arc::new(EmbeddedStorage::open(factory.0.path(), options).unwrap());
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..32 {
        let storage = Arc::clone(&storage);
        writers.spawn(async move {
            for number in 0..100 {
                create(&storage, &format!("/r/{writer}-{number}"), 6_000).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    // 19 MB were written without readers: the WAL stays near its limit.
    let log = paths::wal(factory.0.path()).metadata().unwrap().len();
    let longest = checkpointer::Checkpointer::longest(WAL_BYTES);
    assert!(log <= longest + WAL_BYTES, "the log has {log} bytes, {longest} are allowed");
    let database = paths::database(factory.0.path()).metadata().unwrap().len();
    assert!(database > 10 << 20, "{database} bytes were copied");
    storage.close().await.unwrap();
    drop(storage);
    assert_eq!(open(factory.0.path()).get_list(list_all()).await.unwrap().items.len(), 3_200);
}
