//! Tests of snapshots of an open store, and of stores restored from snapshots.

use super::*;
use crate::{
    KeyValue, MemoryStorage, StorageEvent, ValueState,
    snapshot::{
        RestoreError, RestoreOptions, Restored, SaveError, SnapshotError, SnapshotFile, SnapshotHeader,
        SnapshotRecord, SnapshotSummary, now_milliseconds, open_verified, restore_snapshot, save_snapshot,
    },
};
use std::sync::atomic::AtomicU64;

fn save(directory: &Path, file: &Path) -> Result<SnapshotSummary, SaveError> {
    EmbeddedSnapshot::open(directory)?.save("/r/", "a test", file, true, &mut |_| {})
}

fn restore(directory: &Path, file: &Path) -> Result<Restored, RestoreError> {
    restore_embedded(directory, file, 0, &mut |_, _| {})
}

fn read(file: &Path) -> Vec<SnapshotRecord> {
    let (mut reader, _) = open_verified(file).unwrap();
    std::iter::from_fn(|| reader.next_record().unwrap()).collect()
}

async fn list(storage: &dyn Storage) -> Vec<KeyValue> {
    storage.get_list(ListRequest { prefix: "/r/".to_owned(), ..list_all() }).await.unwrap().items
}

/// A store with created, updated, deleted and recreated keys, one outside the prefix, and one that expires.
async fn fill(storage: &EmbeddedStorage) {
    for object in 0..60 {
        let name = format!("/r/{object:02}");
        let key = Key::new(name.clone());
        let revision = create(storage, &name, 100 + object).await.unwrap();
        if object % 2 == 0 {
            storage
                .update(&key, Bytes::from(format!("{{\"n\":{object}}}")).into(), revision, None)
                .await
                .unwrap();
        } else if object % 3 == 0 {
            storage.delete(&key, revision).await.unwrap();
            if object % 9 == 0 {
                create(storage, &name, 10).await.unwrap();
            }
        }
    }
    let hour = Some(Duration::from_secs(3600));
    storage.create(&Key::new("/r/event"), Bytes::from_static(b"k8s\0event").into(), hour).await.unwrap();
    create(storage, "/elsewhere", 5).await.unwrap();
}

#[tokio::test]
async fn a_restored_store_goes_on_where_the_saved_one_was() {
    let factory = Embedded::new();
    let (from, to, file) =
        (factory.0.path().join("from"), factory.0.path().join("to"), factory.0.path().join("a.snap"));
    let storage = open(&from);
    fill(&storage).await;
    let snapshot = EmbeddedSnapshot::open(&from).unwrap();
    assert_eq!(snapshot.keys_outside("/r/"), 1);
    drop(snapshot);
    let summary = save(&from, &file).unwrap();
    let revision = storage.current_revision().await.unwrap();
    assert_eq!((summary.header.revision, summary.expiring), (revision, 1));
    let before = list(&storage).await;
    assert_eq!(summary.keys, before.len() as u64);

    let restored = restore(&to, &file).unwrap();
    assert_eq!((restored.revision, restored.keys, restored.expired), (revision, summary.keys, 0));
    let second = open(&to);
    assert_eq!(second.current_revision().await.unwrap(), revision);
    assert_eq!(list(&second).await, before, "values and revisions are the same");
    let compacted = second
        .watch(WatchRequest { prefix: "/r/".to_owned(), after: Revision(revision.0 - 1) })
        .await
        .map(drop);
    assert!(
        matches!(&compacted, Err(StorageError::Compacted { compacted }) if *compacted == revision),
        "{compacted:?}"
    );
    let mut watch = second.watch(WatchRequest { prefix: "/r/".to_owned(), after: revision }).await.unwrap();
    let updated = &before[0];
    let next = second
        .update(&updated.key, Bytes::from_static(b"{}").into(), updated.mod_revision, None)
        .await
        .unwrap();
    assert_eq!(next.0, revision.0 + 1);
    let deleted = second.delete(&updated.key, next).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        for event in watch.next_batch().await.unwrap() {
            let StorageEvent::Write { kind, revision, kv } = event else { panic!("{event:?}") };
            assert_eq!((&kv.key, kv.create_revision), (&updated.key, updated.create_revision));
            seen.push((kind, revision));
        }
    }
    assert_eq!(seen, [(crate::EventKind::Update, next), (crate::EventKind::Delete, deleted)]);
    let expected: Vec<KeyValue> = before.iter().skip(1).cloned().collect();
    assert_eq!(list(&second).await, expected);
    second.close().await.unwrap();
    drop(second);

    let second = open(&to);
    assert_eq!(second.current_revision().await.unwrap(), deleted);
    assert_eq!(list(&second).await, expected);
    second.close().await.unwrap();
    // A snapshot of a store that no process has open.
    let again = factory.0.path().join("b.snap");
    assert_eq!(save(&to, &again).unwrap().header.revision, deleted);
    let names = |records: Vec<SnapshotRecord>| -> Vec<(Key, u64)> {
        records.into_iter().map(|record| (record.key, record.expires)).collect()
    };
    assert_eq!(names(read(&again)), names(read(&file)[1..].to_vec()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_save_among_writes_and_compactions_is_the_state_at_its_revision() {
    let factory = Embedded::new();
    let options = EmbeddedOptions { wal_bytes: 64 << 10, ..EmbeddedOptions::default() };
    let directory = factory.0.path().join("store");
    let storage = Arc::new(EmbeddedStorage::open(&directory, options).unwrap());
    // The expected history, from a watch.
    let mut watch =
        storage.watch(WatchRequest { prefix: "/r/".to_owned(), after: Revision(1) }).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writes = Arc::new(AtomicU64::new(0));
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (storage, stop, writes) = (Arc::clone(&storage), Arc::clone(&stop), Arc::clone(&writes));
            tokio::spawn(async move {
                for round in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let key = Key::new(format!("/r/{writer}-{}", round % 40));
                    let current = storage.get(&key).await.unwrap().kv.map(|kv| kv.mod_revision);
                    let value = Bytes::from(format!("{{\"writer\":{writer},\"round\":{round}}}").repeat(20));
                    match (current, round % 3) {
                        (None, _) => storage.create(&key, value.into(), None).await.unwrap(),
                        (Some(current), 0) => storage.delete(&key, current).await.unwrap(),
                        (Some(current), _) => {
                            storage.update(&key, value.into(), current, None).await.unwrap()
                        }
                    };
                    if writes.fetch_add(1, Ordering::Relaxed) % 50 == 0 {
                        let revision = storage.current_revision().await.unwrap();
                        storage.compact(revision).await.unwrap();
                    }
                }
            })
        })
        .collect();
    let mut snapshots = Vec::new();
    for number in 0..6 {
        let target = writes.load(Ordering::Relaxed) + 60;
        while writes.load(Ordering::Relaxed) < target {
            tokio::task::yield_now().await;
        }
        let (directory, file) = (directory.clone(), factory.0.path().join(format!("{number}.snap")));
        let saved = tokio::task::spawn_blocking(move || (save(&directory, &file), file)).await.unwrap();
        snapshots.push((saved.0.unwrap().header.revision, read(&saved.1)));
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    let end = storage.current_revision().await.unwrap();
    storage.request_progress().await.unwrap();
    let mut events = Vec::new();
    'all: loop {
        for event in watch.next_batch().await.unwrap() {
            match event {
                StorageEvent::Write { kind, revision, kv } => events.push((kind, revision, kv)),
                StorageEvent::Progress(reached) if reached >= end => break 'all,
                StorageEvent::Progress(_) => {}
                StorageEvent::Error(error) => panic!("{error}"),
            }
        }
    }
    for (at, records) in snapshots {
        let mut expected = std::collections::BTreeMap::new();
        for (kind, revision, kv) in &events {
            if *revision <= at {
                match kind {
                    crate::EventKind::Delete => expected.remove(&kv.key),
                    _ => expected.insert(kv.key.clone(), kv.clone()),
                };
            }
        }
        let saved: Vec<KeyValue> = records
            .into_iter()
            .map(|SnapshotRecord { key, value, create_revision, mod_revision, .. }| KeyValue {
                key,
                value: value.into(),
                create_revision,
                mod_revision,
                state: ValueState::Current,
            })
            .collect();
        assert!(!saved.is_empty());
        assert_eq!(saved, expected.into_values().collect::<Vec<_>>(), "at {at}");
    }
}

#[tokio::test]
async fn a_store_is_never_replaced_and_a_damaged_snapshot_makes_none() {
    let factory = Embedded::new();
    let (from, file) = (factory.0.path().join("from"), factory.0.path().join("a.snap"));
    let storage = open(&from);
    fill(&storage).await;
    save(&from, &file).unwrap();
    let refused = restore(&from, &file);
    assert!(matches!(&refused, Err(RestoreError::Open(OpenError::Locked { .. }))), "{refused:?}");
    storage.close().await.unwrap();
    drop(storage);
    let before = fs::read(paths::database(&from)).unwrap();
    let refused = restore(&from, &file);
    assert!(matches!(&refused, Err(RestoreError::StoreExists { .. })), "{refused:?}");
    assert!(fs::read(paths::database(&from)).unwrap() == before);

    let to = factory.0.path().join("to");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 10]).unwrap();
    let refused = restore(&to, &file);
    assert!(matches!(&refused, Err(RestoreError::Snapshot(SnapshotError::Damaged { .. }))), "{refused:?}");
    assert!(!to.exists(), "nothing was made");

    // The remains of a killed restore are not a store, and do not prevent the next restore.
    fs::create_dir_all(&to).unwrap();
    fs::write(to.join("pintle.db.new"), vec![7; 100_000]).unwrap();
    fs::write(to.join("pintle.db.new-journal"), vec![7; 1_000]).unwrap();
    fs::write(&file, &bytes).unwrap();
    restore(&to, &file).unwrap();
    let mut names: Vec<_> = fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["LOCK", "pintle.db"]);
    assert!(!list(&open(&to)).await.is_empty());
}

#[tokio::test]
async fn a_damaged_store_makes_no_snapshot() {
    let factory = Embedded::new();
    let (from, file) = (factory.0.path().join("from"), factory.0.path().join("a.snap"));
    let missing = save(&from, &file);
    assert!(matches!(&missing, Err(SaveError::Open(OpenError::Io { .. }))), "{missing:?}");
    assert!(!from.exists(), "looking makes nothing");
    let storage = open(&from);
    storage.create(&Key::new("/r/a"), Bytes::from_static(b"one certain value").into(), None).await.unwrap();
    storage.close().await.unwrap();
    drop(storage);
    let path = paths::database(&from);
    let content = fs::read(&path).unwrap();
    let offset = content.windows(17).position(|bytes| bytes == b"one certain value").unwrap();
    let mut damaged = content.clone();
    damaged[offset] = b'0';
    fs::write(&path, damaged).unwrap();
    let refused = save(&from, &file).expect_err("a damaged value").to_string();
    assert!(refused.contains("pintle.db") && refused.contains("/r/a"), "{refused}");
    assert!(!file.exists());
}

#[tokio::test]
async fn a_moved_cluster_is_the_same_cluster() {
    // The memory engine stands for an engine that gives every write its own revision, as etcd does.
    let factory = Embedded::new();
    let path = |name: &str| factory.0.path().join(name);
    let storage = open(&path("first"));
    fill(&storage).await;
    let there = save(&path("first"), &path("there.snap")).unwrap();
    let between = Arc::new(MemoryStorage::new());
    let options = RestoreOptions::default();
    let moved =
        restore_snapshot(between.clone(), &path("there.snap"), &options, &mut |_, _, _| {}).await.unwrap();
    assert!(moved.revision > there.header.revision);
    let back =
        save_snapshot(&*between, "/r/", "a test", &path("back.snap"), false, &mut |_| {}).await.unwrap();
    assert_eq!(back.expiring, 1);
    let restored = restore(&path("second"), &path("back.snap")).unwrap();
    assert_eq!(restored.revision, moved.revision);
    let second = list(&open(&path("second"))).await;
    let pairs = |items: Vec<KeyValue>| items.into_iter().map(|kv| (kv.key, kv.value)).collect::<Vec<_>>();
    assert_eq!(pairs(second), pairs(list(&storage).await));
    let expires = |name: &str| read(&path(name)).iter().map(|record| record.expires).max().unwrap();
    let drift = expires("there.snap").abs_diff(expires("back.snap"));
    assert!(drift < 10_000, "the time of expiry moved by {drift} ms");
}

#[tokio::test]
async fn keys_that_share_a_revision_get_their_own() {
    let factory = Embedded::new();
    let (to, file) = (factory.0.path().join("to"), factory.0.path().join("a.snap"));
    let header = SnapshotHeader {
        prefix: "/r/".to_owned(),
        revision: Revision(20),
        saved: now_milliseconds(),
        source: "etcd".to_owned(),
        program: "a test".to_owned(),
    };
    let mut output = SnapshotFile::create(&file, false, header).unwrap();
    for (name, create_revision, mod_revision, expires) in
        [("a", 5, 7, 0), ("b", 7, 7, 0), ("c", 7, 7, 1), ("d", 7, 7, 0), ("e", 9, 9, 0)]
    {
        output
            .write(&SnapshotRecord {
                key: Key::new(format!("/r/{name}")),
                value: Bytes::from_static(b"{}"),
                create_revision: Revision(create_revision),
                mod_revision: Revision(mod_revision),
                expires,
            })
            .unwrap();
    }
    output.finish().unwrap();
    let restored = restore_embedded(&to, &file, 100, &mut |_, _| {}).unwrap();
    assert_eq!((restored.revision, restored.keys, restored.expired), (Revision(122), 4, 1));
    let storage = open(&to);
    assert_eq!(storage.current_revision().await.unwrap(), Revision(122));
    let revisions: Vec<_> =
        list(&storage).await.iter().map(|kv| (kv.create_revision.0, kv.mod_revision.0)).collect();
    assert_eq!(revisions, [(5, 7), (7, 121), (7, 122), (9, 9)]);
    assert_eq!(create(&storage, "/r/f", 1).await.unwrap(), Revision(123));
}
