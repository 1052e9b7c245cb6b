//! Tests snapshots of etcd, and restores into it.

use bytes::Bytes;
use pintle_etcd_tests::options;
use pintle_harness::{Error, Etcd, EtcdConfig};
use pintle_storage::{
    EmbeddedOptions, EmbeddedSnapshot, EmbeddedStorage, EtcdSnapshotStore, EtcdStorage, Key, KeyValue,
    ListRequest, Revision, Storage, StorageError, WatchRequest, restore_embedded,
    snapshot::{
        RestoreError, RestoreOptions, RestorePhase, Restored, SaveError, SnapshotRecord, SnapshotSummary,
        open_verified, restore_snapshot, save_snapshot, unfinished_restore,
    },
};
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

const PREFIX: &str = "/registry/";

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

async fn store(etcd: &Etcd) -> Arc<EtcdSnapshotStore> {
    Arc::new(EtcdSnapshotStore::connect(options(etcd, PREFIX)).await.unwrap())
}

async fn engine(etcd: &Etcd) -> EtcdStorage {
    EtcdStorage::open(options(etcd, PREFIX)).await.unwrap()
}

/// Creates an embedded store with some history, and its snapshot.
async fn embedded(directory: &Path, objects: usize) -> (Vec<KeyValue>, PathBuf, SnapshotSummary) {
    let storage =
        Arc::new(EmbeddedStorage::open(directory.join("embedded"), EmbeddedOptions::default()).unwrap());
    let writers: Vec<_> = (0..16)
        .map(|writer| {
            let storage = Arc::clone(&storage);
            tokio::spawn(async move {
                for object in (writer..objects).step_by(16) {
                    let key = Key::new(format!("/registry/pods/ns-{}/p{object}", object % 7));
                    let value = Bytes::from(format!("k8s\0{}", "x".repeat(object % 3000)));
                    let revision = storage.create(&key, value.into(), None).await.unwrap();
                    if object % 5 == 0 {
                        let other = Bytes::from(format!("{{\"object\":{object}}}"));
                        storage.update(&key, other.into(), revision, None).await.unwrap();
                    }
                    if object % 11 == 0 {
                        let ttl = Some(Duration::from_secs(600 + object as u64));
                        let event = Key::new(format!("/registry/events/ns/e{object}"));
                        storage.create(&event, Bytes::from_static(b"k8s\0e").into(), ttl).await.unwrap();
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    storage.create(&Key::new("/elsewhere"), Bytes::from_static(b"x").into(), None).await.unwrap();
    let file = directory.join("embedded.snap");
    let snapshot = EmbeddedSnapshot::open(directory.join("embedded")).unwrap();
    let summary = snapshot.save(PREFIX, "a test", &file, false, &mut |_| {}).unwrap();
    (list(&*storage).await, file, summary)
}

async fn list(storage: &dyn Storage) -> Vec<KeyValue> {
    let everything = ListRequest { prefix: PREFIX.to_owned(), start_after: None, limit: 0, revision: None };
    storage.get_list(everything).await.unwrap().items
}

async fn save(store: &EtcdSnapshotStore, file: &Path) -> Result<SnapshotSummary, SaveError> {
    save_snapshot(store, PREFIX, "a test", file, true, &mut |_| {}).await
}

async fn restore(store: &Arc<EtcdSnapshotStore>, file: &Path) -> Result<Restored, RestoreError> {
    restore_snapshot(store.clone(), file, &RestoreOptions::default(), &mut |_, _, _| {}).await
}

fn records(file: &Path) -> Vec<SnapshotRecord> {
    let (mut reader, _) = open_verified(file).unwrap();
    std::iter::from_fn(|| reader.next_record().unwrap()).collect()
}

fn pairs(items: &[KeyValue]) -> Vec<(&Key, &Bytes)> {
    items.iter().map(|kv| (&kv.key, &kv.value.bytes)).collect()
}

/// Restores into etcd and back: every key and value stays the same, and no revision decreases.
async fn there_and_back(etcd: &Etcd) {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (before, file, summary) = embedded(directory.path(), 1500).await;
    assert_eq!((summary.keys, summary.expiring), (before.len() as u64, 137));

    let store = store(etcd).await;
    let restored = restore(&store, &file).await.unwrap();
    assert_eq!((restored.keys, restored.expired, restored.resumed), (summary.keys, 0, false));
    let engine = engine(etcd).await;
    let there = list(&engine).await;
    assert_eq!(pairs(&there), pairs(&before));
    let old = summary.header.revision;
    assert!(there.iter().all(|kv| kv.create_revision > old), "a client has seen this revision");
    let mut revisions: Vec<Revision> = there.iter().map(|kv| kv.mod_revision).collect();
    revisions.sort();
    revisions.dedup();
    assert_eq!(revisions.len(), there.len(), "every object has a revision of its own");
    for after in [Revision(2), old] {
        let request = WatchRequest { prefix: PREFIX.to_owned(), after };
        let watch = engine.watch(request).await.map(drop);
        assert!(matches!(watch, Err(StorageError::Compacted { .. })), "after {after}: {watch:?}");
    }
    let own = ListRequest { prefix: "pintle".to_owned(), start_after: None, limit: 0, revision: None };
    assert_eq!(engine.get_list(own).await.unwrap().items, [], "nothing of our own is left");

    let back = save(&store, &path("etcd.snap")).await.unwrap();
    assert_eq!(
        (back.keys, back.key_bytes, back.value_bytes),
        (summary.keys, summary.key_bytes, summary.value_bytes)
    );
    let again = restore_embedded(path("again"), &path("etcd.snap"), 0, &mut |_, _| {}).unwrap();
    assert_eq!(again.keys, summary.keys);
    let storage = EmbeddedStorage::open(path("again"), EmbeddedOptions::default()).unwrap();
    assert_eq!(list(&storage).await, there, "with etcd's revisions");
    for (first, last) in records(&file).iter().zip(records(&path("etcd.snap"))) {
        assert_eq!((first.expires == 0, &first.key), (last.expires == 0, &last.key));
        let drift = last.expires.abs_diff(first.expires);
        // Keys within half a minute share leases, and etcd counts in seconds.
        assert!(drift < 33_000, "{}: {drift} ms", first.key);
    }
    let refused = restore(&store, &file).await;
    assert!(matches!(&refused, Err(RestoreError::KeysExist { .. })), "{refused:?}");
}

#[test]
fn a_move_to_one_member_and_back_keeps_everything() -> Result<(), Error> {
    let etcd = Etcd::start(1)?;
    runtime().block_on(there_and_back(&etcd));
    Ok(())
}

#[test]
fn a_move_to_three_members_with_certificates_and_back_keeps_everything() -> Result<(), Error> {
    let etcd = Etcd::launch(EtcdConfig::current()?.with_members(3).with_tls())?;
    runtime().block_on(there_and_back(&etcd));
    Ok(())
}

#[test]
fn a_move_to_old_etcd_and_back_keeps_everything() -> Result<(), Error> {
    let etcd = Etcd::launch(EtcdConfig::old()?)?;
    runtime().block_on(there_and_back(&etcd));
    Ok(())
}

#[test]
fn a_restore_outlives_a_member_and_its_leader() -> Result<(), Error> {
    let mut etcd = Etcd::start(3)?;
    let runtime = runtime();
    let directory = tempfile::tempdir()?;
    let (before, file, _) = runtime.block_on(embedded(directory.path(), 3000));
    let store = runtime.block_on(store(&etcd));
    let keys = Arc::new(AtomicU64::new(0));
    let restoring = {
        let (store, keys) = (store.clone(), Arc::clone(&keys));
        runtime.spawn(async move {
            let mut tell = |phase: RestorePhase, done: u64, _: u64| {
                if phase == RestorePhase::Keys {
                    keys.store(done, Ordering::Relaxed);
                }
            };
            restore_snapshot(store, &file, &RestoreOptions::default(), &mut tell).await
        })
    };
    pintle_harness::wait_for("written keys", Duration::from_secs(60), || {
        (keys.load(Ordering::Relaxed) >= 1000 || restoring.is_finished()).then_some(())
    })?;
    let leader = etcd.leader()?;
    etcd.member_mut(leader)?.kill()?;
    let restored = runtime.block_on(restoring)?.unwrap();
    assert_eq!(restored.keys, before.len() as u64);
    Ok(())
}

#[test]
fn an_interrupted_restore_is_finished_by_repeating_it() -> Result<(), Error> {
    let mut etcd = Etcd::start(1)?;
    let runtime = runtime();
    let directory = tempfile::tempdir()?;
    let (before, file, summary) = runtime.block_on(embedded(directory.path(), 2000));
    let store = runtime.block_on(store(&etcd));
    // The restore stops after a thousand keys, as by a crash; then etcd crashes as well.
    let (reached, told) = tokio::sync::oneshot::channel();
    let mut reached = Some(reached);
    let mut tell = |phase: RestorePhase, done: u64, _: u64| {
        if phase == RestorePhase::Keys
            && done >= 1000
            && let Some(reached) = reached.take()
        {
            let _ = reached.send(());
        }
    };
    let options = RestoreOptions::default();
    runtime.block_on(async {
        tokio::select! {
            restored = restore_snapshot(store.clone(), &file, &options, &mut tell) => {
                panic!("it was not interrupted: {restored:?}")
            }
            _ = told => {}
        }
    });
    etcd.member_mut(0)?.kill()?;
    etcd.member_mut(0)?.restart()?;
    etcd.wait_ready()?;
    runtime.block_on(async {
        let engine = engine(&etcd).await;
        let there = list(&engine).await.len();
        assert!(there > 0 && there < before.len(), "{there} keys are there");
        assert_eq!(unfinished_restore(&engine, PREFIX).await.unwrap(), Some(summary.sha256.clone()));
        let other = directory.path().join("other.snap");
        EmbeddedSnapshot::open(directory.path().join("embedded"))
            .unwrap()
            .save("/registry/pods/", "a test", &other, false, &mut |_| {})
            .unwrap();
        let refused = restore(&store, &other).await;
        assert!(matches!(&refused, Err(RestoreError::KeysExist { .. })), "{refused:?}");
        let restored = restore(&store, &file).await.unwrap();
        assert!(restored.resumed);
        let after = list(&engine).await;
        assert_eq!(pairs(&after), pairs(&before));
        assert!(after.iter().all(|kv| kv.mod_revision > summary.header.revision));
        assert_eq!(unfinished_restore(&engine, PREFIX).await.unwrap(), None);
    });
    Ok(())
}

#[test]
fn a_save_among_writes_and_compactions_is_of_one_revision() -> Result<(), Error> {
    let etcd = Etcd::start(1)?;
    let runtime = runtime();
    let directory = tempfile::tempdir()?;
    runtime.block_on(async {
        let engine = Arc::new(engine(&etcd).await);
        let writing = Arc::clone(&engine);
        let write = move |number: u64| {
            let engine = Arc::clone(&writing);
            async move {
                let key = Key::new(format!("/registry/configmaps/ns/c{:03}", number % 300));
                let value = Bytes::from(format!("{{\"n\":{number}}}"));
                let current = engine.get(&key).await.unwrap().kv;
                match current {
                    None => engine.create(&key, value.into(), None).await.unwrap(),
                    Some(kv) if number.is_multiple_of(7) => {
                        engine.delete(&key, kv.mod_revision).await.unwrap()
                    }
                    Some(kv) => engine.update(&key, value.into(), kv.mod_revision, None).await.unwrap(),
                }
            }
        };
        for number in 1..=300 {
            write(number).await;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let writer = {
            let stop = Arc::clone(&stop);
            let writes = (301..).map(write);
            tokio::spawn(async move {
                for (count, write) in writes.enumerate() {
                    if stop.load(Ordering::Relaxed) {
                        return count;
                    }
                    write.await;
                }
                0
            })
        };
        let store = store(&etcd).await;
        for number in 0..5 {
            let file = directory.path().join(format!("{number}.snap"));
            let summary = save(&store, &file).await.unwrap();
            let at = summary.header.revision;
            let request =
                ListRequest { prefix: PREFIX.to_owned(), start_after: None, limit: 0, revision: Some(at) };
            let expected = engine.get_list(request).await.unwrap().items;
            let saved = records(&file);
            let saved: Vec<_> =
                saved.iter().map(|record| (&record.key, &record.value, record.mod_revision)).collect();
            let expected: Vec<_> =
                expected.iter().map(|kv| (&kv.key, &kv.value.bytes, kv.mod_revision)).collect();
            assert_eq!(saved, expected, "at {at}");
            engine.compact(at).await.unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        assert!(writer.await.unwrap() > 0, "nothing was written meanwhile");
    });
    Ok(())
}

/// No API server writes several keys in one transaction, but other tools do: such keys share a revision.
#[test]
fn keys_of_one_transaction_go_into_an_embedded_store() -> Result<(), Error> {
    let etcd = Etcd::start(1)?;
    // /registry/a and /registry/b.
    let put = |key: &str| json!({"requestPut": {"key": key, "value": "e30="}});
    let transaction = json!({"success": [put("L3JlZ2lzdHJ5L2E="), put("L3JlZ2lzdHJ5L2I=")]});
    etcd.member(0)?.call("/v3/kv/txn", &transaction)?;
    let directory = tempfile::tempdir()?;
    let (file, to) = (directory.path().join("a.snap"), directory.path().join("to"));
    runtime().block_on(async {
        let summary = save(&*store(&etcd).await, &file).await.unwrap();
        assert_eq!((summary.keys, summary.header.revision), (2, Revision(2)));
        let restored = restore_embedded(&to, &file, 0, &mut |_, _| {}).unwrap();
        assert_eq!(restored.revision, Revision(3));
        let storage = EmbeddedStorage::open(&to, EmbeddedOptions::default()).unwrap();
        let there = list(&storage).await;
        let there: Vec<_> =
            there.iter().map(|kv| (kv.key.as_str(), &kv.value[..], kv.mod_revision.0)).collect();
        assert_eq!(there, [("/registry/a", &b"{}"[..], 2), ("/registry/b", &b"{}"[..], 3)]);
    });
    Ok(())
}

#[test]
fn a_value_that_etcd_refuses_is_named() -> Result<(), Error> {
    let etcd = Etcd::start(1)?;
    let directory = tempfile::tempdir()?;
    let path = |name: &str| directory.path().join(name);
    runtime().block_on(async {
        let storage = EmbeddedStorage::open(path("embedded"), EmbeddedOptions::default()).unwrap();
        let large = Key::new("/registry/configmaps/ns/large");
        storage.create(&large, Bytes::from(vec![b' '; 1_700_000]).into(), None).await.unwrap();
        let snapshot = EmbeddedSnapshot::open(path("embedded")).unwrap();
        snapshot.save(PREFIX, "a test", &path("a.snap"), false, &mut |_| {}).unwrap();
        let refused = restore(&store(&etcd).await, &path("a.snap")).await;
        assert!(
            matches!(&refused, Err(RestoreError::Write { key, source }) if *key == large
                && source.to_string().contains("too large")),
            "{refused:?}"
        );
    });
    Ok(())
}
