//! Tests of a disk that is full, or that fails.

use super::*;
use pintle_fault_vfs::{Call, Effect, Fault, FaultDisk};

fn poisoned<T: std::fmt::Debug>(result: &Result<T, WriteError>) -> bool {
    matches!(result, Err(WriteError::Storage(StorageError::Poisoned(_))))
}

#[tokio::test]
async fn a_full_disk_fails_writes_and_health_until_there_is_space() {
    let factory = Embedded::new();
    let options = EmbeddedOptions { quota_bytes: Some(1 << 20), ..EmbeddedOptions::default() };
    let storage = EmbeddedStorage::open(factory.0.path(), options).unwrap();
    let key = Key::new("/r/a");
    let mut last = create(&storage, "/r/a", 3_000).await.unwrap();
    let mut writes = 0;
    let error = loop {
        let value = noise(&format!("value {writes}"), 100_000);
        match storage.update(&key, value.into(), last, None).await {
            Ok(revision) => last = revision,
            Err(error) => break error,
        }
        // The database is found to be full when it follows.
        settled(&storage).await;
        writes += 1;
        assert!(writes < 20, "2 MB in 1 MB");
    };
    assert!(
        matches!(&error, WriteError::Storage(StorageError::Engine(why)) if why.contains("full")),
        "{error}"
    );
    assert!(storage.health().await.is_err());
    // The acknowledged writes are there, and the failed write took no revision.
    let response = storage.get(&key).await.unwrap();
    assert_eq!((response.kv.unwrap().mod_revision, response.revision), (last, last));

    storage.compact(last).await.unwrap();
    assert_eq!(storage.health().await, Ok(()), "compaction made space");
    create(&storage, "/r/b", 100_000).await.unwrap();
    drop(storage);
    assert_eq!(open(factory.0.path()).get_list(list_all()).await.unwrap().items.len(), 2);
}

#[tokio::test]
async fn a_failed_commit_stops_all_writes_but_not_reads() {
    let factory = Embedded::new();
    let disk = FaultDisk::new(factory.0.path());
    let storage = open(factory.0.path());
    let revision = create(&storage, "/r/a", 10).await.unwrap();
    disk.fail(Fault::every(Call::Sync, Effect::IoError));
    let first = create(&storage, "/r/b", 10).await;
    assert!(poisoned(&first), "{first:?}");
    disk.heal();

    // The store stays poisoned although a sync would succeed now: the state of the disk is unknown.
    let second = create(&storage, "/r/c", 10).await;
    assert!(poisoned(&second), "{second:?}");
    assert!(matches!(storage.health().await, Err(StorageError::Poisoned(_))));
    assert!(matches!(storage.compact(revision).await, Err(StorageError::Poisoned(_))));
    assert_eq!(storage.get(&Key::new("/r/a")).await.unwrap().kv.unwrap().mod_revision, revision);
    assert_eq!(storage.current_revision().await, Ok(revision));
    storage.close().await.unwrap();
    drop(storage);

    // The write whose sync failed may or may not be there.
    let storage = open(factory.0.path());
    assert_eq!(storage.health().await, Ok(()));
    let newest = storage.current_revision().await.unwrap();
    assert!(newest.0 <= revision.0 + 1, "{newest}");
    assert_eq!(create(&storage, "/r/d", 10).await.unwrap().0, newest.0 + 1);
}

#[tokio::test]
async fn a_compaction_after_a_failed_transaction_writes_nothing_more() {
    let factory = Embedded::new();
    let disk = FaultDisk::new(factory.0.path());
    let storage = open(factory.0.path());
    create(&storage, "/r/a", 10).await.unwrap();
    create(&storage, "/r/b", 10).await.unwrap();
    settled(&storage).await;
    let compacted = storage.compacted_revision();
    disk.fail(Fault { call: Call::Write, file: "-wal", after: 0, times: 1, effect: Effect::IoError });
    let revision = create(&storage, "/r/c", 10).await.unwrap();
    let result = storage.compact(revision).await;
    assert!(matches!(result, Err(StorageError::Poisoned(_))), "{result:?}");
    assert_eq!(disk.failed(), 1);
    assert_eq!(storage.compacted_revision(), compacted, "even though it would work now");
}
