use super::*;
use crate::{
    BoxFuture, EventKind, Key, ListRequest, MemoryStorage, Revision, Storage, StorageError, StorageEvent,
    WatchRequest, restore_embedded,
};
use bytes::Bytes;
use pintle_fault_vfs::{FaultDisk, Operation, Random, Trace};
use proptest::prelude::*;
use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

fn header(revision: u64) -> SnapshotHeader {
    SnapshotHeader {
        prefix: "/r/".to_owned(),
        revision: Revision(revision),
        saved: 1_700_000_000_123,
        source: "memory".to_owned(),
        program: "a test".to_owned(),
    }
}

fn record(name: &str, value: &[u8], create: u64, modified: u64) -> SnapshotRecord {
    SnapshotRecord {
        key: Key::new(format!("/r/{name}")),
        value: Bytes::copy_from_slice(value),
        create_revision: Revision(create),
        mod_revision: Revision(modified),
        expires: 0,
    }
}

fn records() -> Vec<SnapshotRecord> {
    let expiring =
        SnapshotRecord { expires: 1_700_000_999_999, ..record("c", b"k8s:enc:aesgcm:v1:k:", 5, 5) };
    vec![record("a", b"{}", 2, 4), record("b", b"k8s\0\x0a\0", 3, 3), expiring, record("d", b"", 6, 7)]
}

fn encode(header: SnapshotHeader, records: &[SnapshotRecord]) -> (Vec<u8>, SnapshotSummary) {
    let mut writer = SnapshotWriter::new(Vec::new(), header).unwrap();
    for record in records {
        writer.write(record).unwrap();
    }
    writer.finish().unwrap()
}

fn decode(bytes: &[u8]) -> Result<(Vec<SnapshotRecord>, SnapshotSummary), SnapshotError> {
    let mut reader = SnapshotReader::new(Path::new("some.snap"), bytes)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    Ok((records, reader.summary().expect("it was read to its end")))
}

#[test]
fn what_was_written_is_read() {
    let (bytes, written) = encode(header(9), &records());
    let (read, summary) = decode(&bytes).unwrap();
    assert_eq!(read, records());
    assert_eq!(summary, written);
    assert_eq!(summary.header, header(9));
    assert_eq!((summary.keys, summary.key_bytes, summary.expiring), (4, 16, 1));
    assert_eq!(summary.forms, ValueForms { json: 1, protobuf: 1, encrypted: 1, other: 1 });
    assert_eq!(summary.file_bytes, bytes.len() as u64);
}

/// A file that the first version of the format wrote: it stays readable, and the writer still produces the same
/// bytes.
#[test]
fn the_format_is_what_it_was() {
    let kept = include_bytes!("../../tests/fixtures/snapshot-v1/whole.snap");
    let (records_read, summary) = decode(kept).unwrap();
    assert_eq!((records_read, summary.header), (records(), header(9)));
    assert!(encode(header(9), &records()).0 == kept);
}

#[test]
fn every_truncation_is_found() {
    let (bytes, _) = encode(header(9), &records());
    for length in 0..bytes.len() {
        match decode(&bytes[..length]) {
            Err(SnapshotError::Foreign { .. }) => assert!(length < 16, "{length}"),
            Err(SnapshotError::Damaged { offset, .. }) => {
                assert!(offset <= length as u64, "{length}: {offset}")
            }
            other => panic!("{length}: {other:?}"),
        }
    }
    let longer = [bytes.as_slice(), b"\n"].concat();
    let error = decode(&longer).unwrap_err();
    assert!(
        matches!(&error, SnapshotError::Damaged { offset, .. } if *offset == bytes.len() as u64),
        "{error}"
    );
}

#[test]
fn every_flipped_bit_is_found() {
    let (bytes, _) = encode(header(9), &records());
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let error = decode(&damaged).expect_err("a flipped bit");
            match error {
                SnapshotError::Foreign { .. } => assert!(at < 8, "{at}"),
                SnapshotError::UnknownFormat { .. } => assert!((8..12).contains(&at), "{at}"),
                SnapshotError::Damaged { offset, .. } => assert!(offset <= at as u64, "{at}: {offset}"),
                other => panic!("{at}: {other:?}"),
            }
        }
    }
}

#[test]
fn damage_names_path_and_offset() {
    let (mut bytes, _) = encode(header(9), &records()[..1]);
    let record = bytes.windows(5).position(|bytes| bytes == b"/r/a{").unwrap();
    bytes[record + 1] = b'x';
    let error = decode(&bytes).unwrap_err().to_string();
    let start = record - 37;
    assert_eq!(
        error,
        format!("some.snap: the snapshot is damaged at offset {start}: a record fails its checksum")
    );
}

/// A file with valid checksums can still contain records that no writer produces.
#[test]
fn records_that_cannot_be_are_refused() {
    let rows: &[(&str, &[SnapshotRecord])] = &[
        ("descending", &[record("b", b"", 2, 2), record("a", b"", 3, 3)]),
        ("twice", &[record("a", b"", 2, 2), record("a", b"", 3, 3)]),
        ("not created", &[record("a", b"", 0, 2)]),
        ("created later", &[record("a", b"", 3, 2)]),
        ("newer than the snapshot", &[record("a", b"", 3, 10)]),
        ("elsewhere", &[SnapshotRecord { key: Key::new("/other/a"), ..record("a", b"", 2, 2) }]),
    ];
    for (what, records) in rows {
        let mut writer = SnapshotWriter::new(Vec::new(), header(9)).unwrap();
        let refused = records.iter().map(|record| writer.write(record)).find_map(Result::err);
        let refused = refused.unwrap_or_else(|| panic!("{what}: it was written"));
        assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput, "{what}");
    }
}

#[test]
fn other_files_are_foreign_and_later_formats_unknown() {
    for other in [&b""[..], b"{}", b"SQLite format 3\0 and so on and so forth", &[0; 4096]] {
        assert!(matches!(decode(other), Err(SnapshotError::Foreign { .. })), "{other:?}");
    }
    let (mut bytes, _) = encode(header(9), &[]);
    bytes[11] = 2;
    assert!(matches!(decode(&bytes), Err(SnapshotError::UnknownFormat { found: 2, .. })));
}

/// A length without a checksum must not make the reader allocate memory for data that is not there.
#[test]
fn lengths_are_not_believed() {
    let (bytes, _) = encode(header(9), &records());
    let mut long_header = bytes.clone();
    long_header[12..16].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(matches!(decode(&long_header), Err(SnapshotError::Damaged { .. })));
}

proptest! {
    #[test]
    fn any_records_survive(
        pairs in proptest::collection::btree_map("[a-z/.-]{1,20}", proptest::collection::vec(any::<u8>(), 0..300), 0..20),
        revision in 1_u64..1 << 40,
        expires in any::<u64>(),
    ) {
        let records: Vec<SnapshotRecord> = pairs
            .iter()
            .enumerate()
            .map(|(number, (name, value))| {
                let modified = (number as u64 * 7919) % revision + 1;
                let expires = if number % 3 == 0 { expires } else { 0 };
                SnapshotRecord { expires, ..record(name, value, modified.div_ceil(2), modified) }
            })
            .collect();
        let (bytes, written) = encode(header(revision), &records);
        let (read, summary) = decode(&bytes).unwrap();
        prop_assert_eq!(read, records);
        prop_assert_eq!(summary, written);
    }

    #[test]
    fn any_bytes_are_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..600), with_header in any::<bool>()) {
        let mut bytes = if with_header { header(9).encode() } else { Vec::new() };
        bytes.extend(&data);
        prop_assert!(decode(&bytes).is_err(), "no hash fits by chance");
    }
}

#[test]
fn a_file_has_its_name_when_it_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.snap");
    let names = || {
        let entries = fs::read_dir(directory.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let mut file = SnapshotFile::create(&path, false, header(9)).unwrap();
    file.write(&records()[0]).unwrap();
    assert_eq!(names(), ["a.snap.partial"]);
    assert!(matches!(SnapshotFile::create(&path, false, header(9)), Err(SnapshotError::Busy { .. })));
    drop(file);
    assert!(names().is_empty(), "{:?}", names());

    // The remains of a crash are overwritten.
    fs::write(directory.path().join("a.snap.partial"), vec![b'x'; 10_000]).unwrap();
    let mut file = SnapshotFile::create(&path, false, header(9)).unwrap();
    file.write(&records()[0]).unwrap();
    let written = file.finish().unwrap();
    assert_eq!(names(), ["a.snap"]);
    assert_eq!(verify(&path).unwrap(), written);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    let again = SnapshotFile::create(&path, false, header(10)).map(drop);
    assert!(matches!(again, Err(SnapshotError::Exists { .. })), "{again:?}");
    SnapshotFile::create(&path, true, header(10)).unwrap().finish().unwrap();
    assert_eq!(verify(&path).unwrap().header, header(10));
}

/// After a power cut, a snapshot's name has the old snapshot or the whole new one; the new one once it is finished.
#[test]
fn a_power_cut_leaves_no_part_of_a_snapshot_under_its_name() {
    let (directory, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = directory.path().join("a.snap");
    let write = |revision: u64, overwrite: bool| {
        let mut file = SnapshotFile::create(&path, overwrite, header(revision)).unwrap();
        for number in 0..200 {
            file.write(&record(&format!("{number:03}"), &[b'x'; 3_000], 2, 4)).unwrap();
        }
        file.finish().unwrap();
    };
    let check = |trace: &Trace, before: Option<Revision>, after: Revision| {
        let is = |wanted: fn(&Operation) -> bool| trace.operations.iter().position(wanted).unwrap();
        let renamed = is(|operation| matches!(operation, Operation::Rename { .. }));
        let finished = is(|operation| *operation == Operation::Mark(1));
        let written = |operation: &&Operation| matches!(operation, Operation::Write { .. });
        assert!(trace.operations[..renamed].iter().filter(written).count() > 2, "in several writes");
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let point = match seed % 4 {
                0 => finished,
                1 => renamed + 1,
                _ => random.below(finished as u64) as usize,
            };
            trace.cut(point, &mut random).write(copy.path()).unwrap();
            let found = verify(&copy.path().join("a.snap"));
            let found = found.ok().map(|summary| summary.header.revision);
            let exists = copy.path().join("a.snap").exists();
            match found {
                Some(revision) if revision == after => assert!(point > renamed, "{seed}"),
                found => assert!(
                    found == before && point < finished && exists == before.is_some(),
                    "{seed}: {found:?}"
                ),
            }
        }
    };
    let disk = FaultDisk::new(directory.path());
    for (before, after) in [(None, 9), (Some(Revision(9)), 10)] {
        disk.record().unwrap();
        write(after, before.is_some());
        disk.mark(1);
        check(&disk.recorded().unwrap(), before, Revision(after));
    }
}

async fn put(storage: &dyn Storage, name: &str, value: &str) -> Revision {
    storage.create(&Key::new(name), Bytes::copy_from_slice(value.as_bytes()).into(), None).await.unwrap()
}

async fn save(source: &dyn SnapshotSource, path: &Path) -> Result<SnapshotSummary, SaveError> {
    save_snapshot(source, "/r/", "a test", path, true, &mut |_| {}).await
}

async fn restore(storage: &Arc<MemoryStorage>, path: &Path) -> Result<Restored, RestoreError> {
    restore_snapshot(storage.clone(), path, &RestoreOptions::default(), &mut |_, _, _| {}).await
}

fn everything(prefix: &str) -> ListRequest {
    ListRequest { prefix: prefix.to_owned(), start_after: None, limit: 0, revision: None }
}

async fn pairs(storage: &dyn Storage, prefix: &str) -> Vec<(String, Bytes)> {
    let items = storage.get_list(everything(prefix)).await.unwrap().items;
    items.into_iter().map(|kv| (kv.key.to_string(), kv.value.bytes)).collect()
}

/// A source that calls a function before each page.
struct Disturbed<'a, F> {
    storage: &'a MemoryStorage,
    pages: AtomicU64,
    before: F,
}

impl<F: Fn(u64) -> BoxFuture<'static, ()> + Send + Sync> SnapshotSource for Disturbed<'_, F> {
    fn name(&self) -> &'static str {
        "disturbed"
    }

    fn page(&self, request: ListRequest) -> BoxFuture<'_, Result<SnapshotPage, StorageError>> {
        Box::pin(async move {
            (self.before)(self.pages.fetch_add(1, Ordering::Relaxed)).await;
            self.storage.page(request).await
        })
    }
}

#[tokio::test]
async fn a_save_is_of_one_revision_whatever_is_written_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.snap");
    let storage = Arc::new(MemoryStorage::new());
    for number in 0..200 {
        put(&*storage, &format!("/r/{number:03}"), "before").await;
    }
    put(&*storage, "/elsewhere", "x").await;
    let before = storage.get_list(everything("/r/")).await.unwrap();
    let writer = Arc::clone(&storage);
    let source = Disturbed {
        storage: &storage,
        pages: AtomicU64::new(0),
        before: move |page| {
            let storage = Arc::clone(&writer);
            Box::pin(async move {
                if page > 0 {
                    put(&*storage, &format!("/r/{:03}-later", page * 10), "later").await;
                    let last = storage.get(&Key::new("/r/199")).await.unwrap().kv.unwrap().mod_revision;
                    storage
                        .update(&Key::new("/r/199"), Bytes::from_static(b"later").into(), last, None)
                        .await
                        .unwrap();
                }
            }) as BoxFuture<'static, ()>
        },
    };
    let summary = save(&source, &path).await.unwrap();
    assert!(source.pages.load(Ordering::Relaxed) > 2);
    assert_eq!((summary.header.revision, summary.keys), (before.revision, 200));
    let (read, _) = decode(&fs::read(&path).unwrap()).unwrap();
    let expected: Vec<_> =
        before.items.iter().map(|kv| (&kv.key, &kv.value.bytes, kv.mod_revision)).collect();
    let saved: Vec<_> = read.iter().map(|record| (&record.key, &record.value, record.mod_revision)).collect();
    assert_eq!(saved, expected);
}

#[tokio::test]
async fn a_save_that_is_overtaken_by_a_compaction_begins_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.snap");
    let storage = Arc::new(MemoryStorage::new());
    for number in 0..100 {
        put(&*storage, &format!("/r/{number:03}"), "x").await;
    }
    for (compactions, finished) in [(2, true), (u64::MAX, false)] {
        let writer = Arc::clone(&storage);
        let source = Disturbed {
            storage: &storage,
            pages: AtomicU64::new(0),
            before: move |page| {
                let storage = Arc::clone(&writer);
                Box::pin(async move {
                    if page % 2 == 1 && page / 2 < compactions {
                        let revision = put(&*storage, &format!("/s/{compactions}-{page}"), "x").await;
                        storage.compact(revision).await.unwrap();
                    }
                }) as BoxFuture<'static, ()>
            },
        };
        let saved = save(&source, &path).await;
        match saved {
            Ok(summary) => assert!(finished && summary.keys == 100),
            Err(SaveError::Storage(StorageError::Compacted { .. })) => assert!(!finished),
            Err(other) => panic!("{other}"),
        }
        assert!(path.exists(), "the earlier one is not touched by one that fails");
        assert!(!directory.path().join("a.snap.partial").exists());
    }
}

#[tokio::test]
async fn nothing_to_save_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.snap");
    let saved = save(&MemoryStorage::new(), &path).await;
    assert!(matches!(&saved, Err(SaveError::Empty { prefix }) if prefix == "/r/"), "{saved:?}");
    assert!(!path.exists());
}

/// A snapshot of a store with some history.
async fn snapshot(path: &Path) -> (MemoryStorage, SnapshotSummary) {
    let storage = MemoryStorage::new();
    for number in 0..50 {
        let name = format!("/r/{number:02}");
        let revision = put(&storage, &name, &format!("{{\"of\":{number}}}")).await;
        if number % 5 == 0 {
            storage.delete(&Key::new(name), revision).await.unwrap();
        }
    }
    storage
        .create(&Key::new("/r/event"), Bytes::from_static(b"{}").into(), Some(Duration::from_secs(3600)))
        .await
        .unwrap();
    let summary = save(&storage, path).await.unwrap();
    assert_eq!((summary.keys, summary.expiring), (41, 1));
    (storage, summary)
}

#[tokio::test]
async fn a_restore_has_the_keys_and_no_revision_that_a_client_has_seen() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.snap");
    let (source, summary) = snapshot(&path).await;
    let target = Arc::new(MemoryStorage::new());
    put(&*target, "/other/key", "of somebody else").await;
    let restored = restore(&target, &path).await.unwrap();
    assert_eq!((restored.keys, restored.expired, restored.resumed), (41, 0, false));
    assert_eq!(pairs(&*target, "/r/").await, pairs(&source, "/r/").await);
    assert_eq!(pairs(&*target, "pintle").await, [], "nothing of our own is left");
    let list = target.get_list(everything("/r/")).await.unwrap();
    assert_eq!(list.revision, restored.revision);
    let old = summary.header.revision;
    assert!(list.items.iter().all(|kv| kv.mod_revision > old && kv.create_revision > old), "{list:?}");
    for revision in [Revision(2), old] {
        let list = target.get_list(ListRequest { revision: Some(revision), ..everything("/r/") }).await;
        assert!(matches!(list, Err(StorageError::Compacted { .. })), "{list:?}");
        let watch = target.watch(WatchRequest { prefix: "/r/".to_owned(), after: revision }).await.map(drop);
        assert!(matches!(watch, Err(StorageError::Compacted { .. })), "{watch:?}");
    }
    // A second restore: there are keys now.
    let again = restore(&target, &path).await;
    assert!(matches!(&again, Err(RestoreError::KeysExist { .. })), "{again:?}");
}

#[tokio::test]
async fn the_revision_is_raised_as_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.snap");
    let (_, summary) = snapshot(&path).await;
    let old = summary.header.revision.0;
    for (bump_revision, least, most) in
        [(None, 2, old), (Some(0), old + 1, old + 200), (Some(1000), old + 1001, old + 1300)]
    {
        let target = Arc::new(MemoryStorage::new());
        let options = RestoreOptions { bump_revision, writers: 8 };
        restore_snapshot(target.clone(), &path, &options, &mut |_, _, _| {}).await.unwrap();
        let revisions = target.get_list(everything("/r/")).await.unwrap().items;
        let revisions = revisions.iter().map(|kv| kv.mod_revision.0);
        let (low, high) = (revisions.clone().min().unwrap(), revisions.max().unwrap());
        assert!(low >= least && high <= most, "{bump_revision:?}: {low} to {high}");
    }
}

#[tokio::test]
async fn the_revision_is_not_raised_to_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.snap");
    snapshot(&path).await;
    for bump in [(1 << 62) - 1, i64::MAX as u64, u64::MAX] {
        let target = Arc::new(MemoryStorage::new());
        let options = RestoreOptions { bump_revision: Some(bump), writers: 8 };
        let restored = restore_snapshot(target.clone(), &path, &options, &mut |_, _, _| {}).await;
        assert!(matches!(&restored, Err(RestoreError::RevisionTooHigh { .. })), "{restored:?}");
        assert_eq!(target.revision().await.unwrap(), Revision(1), "nothing was written");
        let store = directory.path().join("store");
        let restored = restore_embedded(&store, &path, bump, &mut |_, _| {});
        assert!(matches!(&restored, Err(RestoreError::RevisionTooHigh { .. })), "{restored:?}");
        assert!(!store.exists(), "nothing was made");
    }
}

#[tokio::test]
async fn an_interrupted_restore_is_finished_by_the_same_snapshot_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.snap");
    let (source, summary) = snapshot(&path).await;
    put(&source, "/r/one-more", "{}").await;
    let other = directory.path().join("b.snap");
    save(&source, &other).await.unwrap();

    // The state after an interrupted restore: the marker, a revision key, and some of the keys.
    let target = Arc::new(MemoryStorage::new());
    put(&*target, "pintle/snapshot-restore/r/", &summary.sha256).await;
    put(&*target, "pintle/snapshot-revision/0", "").await;
    put(&*target, "/r/03", "{\"of\":3}").await;
    put(&*target, "/r/41", "{\"of\":41}").await;
    assert_eq!(unfinished_restore(&*target, "/r/").await.unwrap(), Some(summary.sha256.clone()));
    assert_eq!(unfinished_restore(&*target, "/s/").await.unwrap(), None);

    let before = target.current_revision().await.unwrap();
    let refused = restore(&target, &other).await;
    assert!(
        matches!(&refused, Err(RestoreError::OtherRestore { other, .. }) if *other == summary.sha256),
        "{refused:?}"
    );
    assert_eq!(target.current_revision().await.unwrap(), before, "nothing was written");

    let restored = restore(&target, &path).await.unwrap();
    assert!(restored.resumed);
    let mut expected = pairs(&source, "/r/").await;
    expected.retain(|(name, _)| name != "/r/one-more");
    assert_eq!(pairs(&*target, "/r/").await, expected);
    assert_eq!(pairs(&*target, "pintle").await, []);
    assert_eq!(unfinished_restore(&*target, "/r/").await.unwrap(), None);
}

#[tokio::test]
async fn somebody_elses_writes_are_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.snap");
    let (_, summary) = snapshot(&path).await;
    for (name, value) in
        [("/r/03", "another"), ("/r/031", "one more"), ("/r/zzz", "one more"), ("/r/!", "one more")]
    {
        let target = Arc::new(MemoryStorage::new());
        put(&*target, "pintle/snapshot-restore/r/", &summary.sha256).await;
        put(&*target, name, value).await;
        let refused = restore(&target, &path).await;
        assert!(
            matches!(&refused, Err(RestoreError::Differs { key, .. }) if key.as_str() == name),
            "{name}: {refused:?}"
        );
        assert!(unfinished_restore(&*target, "/r/").await.unwrap().is_some(), "it is not finished");
    }
}

#[tokio::test]
async fn a_damaged_snapshot_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.snap");
    snapshot(&path).await;
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&path, bytes).unwrap();
    let target = Arc::new(MemoryStorage::new());
    let refused = restore(&target, &path).await;
    assert!(matches!(&refused, Err(RestoreError::Snapshot(SnapshotError::Damaged { .. }))), "{refused:?}");
    assert_eq!(target.current_revision().await.unwrap(), Revision(1));
}

#[tokio::test]
async fn what_expires_is_restored_with_the_time_it_has_left() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.snap");
    let now = now_milliseconds();
    let mut file = SnapshotFile::create(&path, false, header(20)).unwrap();
    for (name, expires) in [("gone", now - 1), ("kept", 0), ("soon", now + 2_000)] {
        file.write(&SnapshotRecord { expires, ..record(name, b"{}", 3, 3) }).unwrap();
    }
    file.finish().unwrap();
    let target = Arc::new(MemoryStorage::new());
    let restored = restore(&target, &path).await.unwrap();
    assert_eq!((restored.keys, restored.expired), (2, 1));
    let request = WatchRequest { prefix: "/r/".to_owned(), after: restored.revision };
    let mut watch = target.watch(request).await.unwrap();
    let events = tokio::time::timeout(Duration::from_secs(20), watch.next_batch()).await.unwrap().unwrap();
    assert!(
        matches!(&events[..], [StorageEvent::Write { kind: EventKind::Delete, kv, .. }] if kv.key.as_str() == "/r/soon"),
        "{events:?}"
    );
}
