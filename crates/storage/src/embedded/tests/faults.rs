//! Injects failures of file system calls at every point of a run: acknowledged writes are kept, others may or may not
//! be, and every caller gets the error.

use super::{
    history::{History, value},
    *,
};
use pintle_fault_vfs::{Call, Effect, Fault, FaultDisk, Image};

/// Small sizes, so that every kind of call comes soon: checkpoints, a restarted WAL, pages that leave the cache
/// early.
fn small() -> EmbeddedOptions {
    EmbeddedOptions {
        wal_bytes: 64 << 10,
        cache_bytes: 64 << 10,
        spare_bytes: 128 << 10,
        ..EmbeddedOptions::default()
    }
}

/// Makes writes until an error or the given number. Records the acknowledged writes in the history, and returns the
/// error.
async fn load(storage: &EmbeddedStorage, history: &mut History, writes: u64) -> Option<WriteError> {
    let after = history.newest();
    let mut stream = storage.watch(WatchRequest { prefix: String::new(), after }).await.unwrap();
    let mut acknowledged = after;
    let mut error = None;
    for number in after.0..after.0 + writes {
        let key = Key::new(format!("/r/{}", number % 7));
        let value = value(1, number, 3_000);
        let current = match storage.get(&key).await {
            Ok(response) => response.kv,
            // Reads also get the error; the next one may succeed.
            Err(StorageError::Engine(_)) => continue,
            Err(error) => panic!("{error}"),
        };
        let written = match current {
            None => storage.create(&key, value.into(), None).await,
            Some(kv) if number % 5 == 0 => storage.delete(&key, kv.mod_revision).await,
            Some(kv) => storage.update(&key, value.into(), kv.mod_revision, None).await,
        };
        match written {
            // An occasional pause, so that the work that follows the writes is done, however slow the machine is.
            Ok(revision) => {
                acknowledged = revision;
                if number % 8 == 7 {
                    settled(storage).await;
                }
            }
            Err(failed) => {
                error = Some(failed);
                break;
            }
        }
    }
    // The watch delivers the remaining events from memory.
    history.follow(&mut stream, acknowledged).await;
    error
}

/// The error that a failing engine returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Full,
    Poisoned,
}

fn told(error: &WriteError) -> Told {
    match error {
        WriteError::Storage(StorageError::Engine(why)) if why.contains("full") => Told::Full,
        WriteError::Storage(StorageError::Poisoned(_)) => Told::Poisoned,
        other => panic!("{other}"),
    }
}

/// Lets each call of a kind in turn fail, once or permanently, each in its own run.
async fn every_call(call: Call, file: &'static str, effect: Effect, times: u64, expected: &[Told]) {
    let mut seen = Vec::new();
    for after in 0..24 {
        let what = format!("{call:?} of *{file} fails with {effect:?} after {after}, {times} times");
        let factory = Embedded::fast();
        let mut history = History::default();
        let disk = FaultDisk::new(factory.0.path());
        let storage = EmbeddedStorage::open(factory.0.path(), small()).unwrap();
        assert!(load(&storage, &mut history, 10).await.is_none());
        disk.fail(Fault { call, file, after: after * 3, times, effect });
        let error = load(&storage, &mut history, 60).await;
        let last = history.newest();
        if let Some(error) = &error {
            assert!(disk.failed() > 0, "{what}: {error}");
            seen.push(told(error));
            match told(error) {
                Told::Poisoned => {
                    let health = storage.health().await;
                    assert!(matches!(health, Err(StorageError::Poisoned(_))), "{what}: {health:?}");
                }
                // A single failure may be over by now; a lasting one is reported by health.
                Told::Full => assert_eq!(storage.health().await.is_err(), times > 1, "{what}"),
            }
        }
        settled(&storage).await;
        // The next process finds the files as they are in the kernel's page cache.
        let found = Image::read(factory.0.path()).unwrap();
        disk.heal();
        if let Some(error) = &error {
            let again = load(&storage, &mut history, 20).await;
            match told(error) {
                Told::Full => {
                    assert!(again.is_none(), "{what}: {again:?}");
                    assert_eq!(storage.health().await, Ok(()), "{what}");
                }
                Told::Poisoned => assert_eq!(again.as_ref().map(told), Some(Told::Poisoned), "{what}"),
            }
        }
        let newest = history.newest();
        drop(storage);
        let storage = EmbeddedStorage::open(factory.0.path(), small());
        let storage = storage.unwrap_or_else(|error| panic!("{what}: {error}"));
        check(&storage, &mut history, newest, &what).await;
        assert_eq!(storage.health().await, Ok(()), "{what}");

        let killed = Embedded::fast();
        found.write(killed.0.path()).unwrap();
        let storage = EmbeddedStorage::open(killed.0.path(), small());
        let storage = storage.unwrap_or_else(|error| panic!("{what}, and killed: {error}"));
        check(&storage, &mut history, last, &what).await;
    }
    for told in expected {
        assert!(seen.contains(told), "{call:?} of *{file} with {effect:?}: {seen:?}");
    }
    assert!(seen.iter().all(|told| expected.contains(told)), "{call:?} of *{file} with {effect:?}: {seen:?}");
}

/// Every acknowledged write is there; the one write whose writer got an error may be.
async fn check(storage: &EmbeddedStorage, history: &mut History, acknowledged: Revision, what: &str) {
    let newest = storage.current_revision().await.unwrap();
    if newest.0 == history.newest().0 + 1 {
        let request = WatchRequest { prefix: String::new(), after: history.newest() };
        let mut stream = storage.watch(request).await.unwrap();
        history.follow(&mut stream, newest).await;
    }
    history.check(storage, acknowledged, what).await;
    let next = create(storage, "/next", 100).await.unwrap();
    assert_eq!(next.0, newest.0 + 1, "{what}");
}

#[tokio::test]
async fn a_failed_sync_poisons() {
    for times in [1, u64::MAX] {
        every_call(Call::Sync, "-wal", Effect::IoError, times, &[Told::Poisoned]).await;
        every_call(Call::Sync, ".db", Effect::IoError, times, &[Told::Poisoned]).await;
        every_call(Call::Sync, "-0.journal", Effect::IoError, times, &[Told::Poisoned]).await;
        every_call(Call::Sync, "-1.journal", Effect::IoError, times, &[Told::Poisoned]).await;
    }
}

#[tokio::test]
async fn a_failed_write_poisons() {
    for times in [1, u64::MAX] {
        every_call(Call::Write, "-wal", Effect::IoError, times, &[Told::Poisoned]).await;
        every_call(Call::Write, ".db", Effect::IoError, times, &[Told::Poisoned]).await;
        every_call(Call::Write, "-0.journal", Effect::IoError, times, &[Told::Poisoned]).await;
        every_call(Call::Open, "-0.journal", Effect::IoError, times, &[Told::Poisoned]).await;
    }
    every_call(Call::Write, "", Effect::ReadOnly, u64::MAX, &[Told::Poisoned]).await;
}

#[tokio::test]
async fn a_thread_that_panics_poisons() {
    // The commit thread writes the journals, and the other one syncs the WAL before they are used again.
    for (call, file) in [(Call::Write, "-0.journal"), (Call::Write, "-1.journal"), (Call::Sync, "-wal")] {
        let mut panics = 0;
        for after in [0, 1, 5] {
            let what = format!("a panic in {call:?} of *{file} after {after}");
            let factory = Embedded::fast();
            let disk = FaultDisk::new(factory.0.path());
            let storage = EmbeddedStorage::open(factory.0.path(), small()).unwrap();
            let key = |number: usize| format!("/r/{number}");
            disk.fail(Fault { call, file, after, times: 1, effect: Effect::Panic });
            let (mut acknowledged, mut error) = (0, None);
            while acknowledged < 300 && error.is_none() {
                match create(&storage, &key(acknowledged), 3_000).await {
                    Ok(_) => acknowledged += 1,
                    Err(failed) => error = Some(failed),
                }
                if acknowledged % 8 == 7 {
                    settled(&storage).await;
                }
            }
            if disk.failed() > 0 {
                panics += 1;
                assert_eq!(error.as_ref().map(told), Some(Told::Poisoned), "{what}");
                // The thread may still be unwinding.
                let health = loop {
                    match storage.health().await {
                        Ok(()) => tokio::task::yield_now().await,
                        Err(error) => break error,
                    }
                };
                assert!(matches!(health, StorageError::Poisoned(_)), "{what}: {health:?}");
            }
            drop(storage);
            let storage = EmbeddedStorage::open(factory.0.path(), small());
            let storage = storage.unwrap_or_else(|error| panic!("{what}: {error}"));
            for number in 0..acknowledged {
                let found = storage.get(&Key::new(key(number))).await.unwrap();
                assert!(found.kv.is_some(), "{what}: {number} of {acknowledged}");
            }
            assert!(create(&storage, "/next", 100).await.is_ok(), "{what}");
        }
        assert!(panics > 0, "no {call:?} of *{file} was made");
    }
}

#[tokio::test]
async fn a_full_disk_is_told_and_writes_go_on_when_it_is_over() {
    for effect in [Effect::DiskFull, Effect::ShortWrite] {
        for times in [1, u64::MAX] {
            every_call(Call::Write, ".journal", effect, times, &[Told::Full]).await;
        }
        // A single failure of the database only delays writers.
        every_call(Call::Write, "-wal", effect, 1, &[]).await;
        every_call(Call::Write, "-wal", effect, u64::MAX, &[Told::Full]).await;
    }
}

/// The rows of a compaction that a full disk stops are deleted when there is room, and not only after a restart.
#[tokio::test]
async fn rows_that_a_full_disk_keeps_are_deleted_when_it_is_over() {
    let mut stopped = 0;
    for after in 0..8 {
        let factory = Embedded::fast();
        let disk = FaultDisk::new(factory.0.path());
        let storage = open(factory.0.path());
        let key = Key::new("/r/a");
        let mut last = create(&storage, "/r/a", 100).await.unwrap();
        for number in 0..50 {
            last = storage.update(&key, value(1, number, 100).into(), last, None).await.unwrap();
        }
        settled(&storage).await;
        disk.fail(Fault {
            call: Call::Write,
            file: "-wal",
            after,
            times: u64::MAX,
            effect: Effect::DiskFull,
        });
        let compacted = storage.compact(last).await;
        disk.heal();
        assert_eq!(storage.health().await, Ok(()), "{after}");
        stopped += usize::from(compacted.is_err());
        storage.compact(last).await.unwrap();
        drop(storage);
        let connection = rusqlite::Connection::open(factory.0.path().join("pintle.db")).unwrap();
        let rows = connection.query_row("SELECT count(*) FROM vals", (), |row| row.get::<_, i64>(0)).unwrap();
        assert!(rows <= 2, "{after}: {rows} rows");
    }
    assert!(stopped > 1, "the disk was full before the rows were deleted, and meanwhile");
}

/// A later compaction does not delete a tombstone before the older writes of its key, which a full disk has kept.
#[tokio::test]
async fn no_key_reappears_whose_rows_a_full_disk_has_kept() {
    for after in 0..8 {
        let factory = Embedded::fast();
        let disk = FaultDisk::new(factory.0.path());
        let storage = open(factory.0.path());
        let key = Key::new("/r/a");
        let mut last = create(&storage, "/r/a", 100).await.unwrap();
        for number in 0..5 {
            last = storage.update(&key, value(1, number, 100).into(), last, None).await.unwrap();
        }
        settled(&storage).await;
        disk.fail(Fault {
            call: Call::Write,
            file: "-wal",
            after,
            times: u64::MAX,
            effect: Effect::DiskFull,
        });
        let _ = storage.compact(last).await;
        disk.heal();
        // Nobody has asked for the health of the store meanwhile.
        last = storage.delete(&key, last).await.unwrap();
        let next = create(&storage, "/r/b", 100).await.unwrap();
        assert!(next > last);
        settled(&storage).await;
        storage.compact(next).await.unwrap();
        drop(storage);
        let found = open(factory.0.path()).get(&key).await.unwrap();
        assert_eq!(found.kv, None, "{after}");
    }
}

#[tokio::test]
async fn a_database_that_cannot_grow_leaves_its_log_in_use() {
    let factory = Embedded::fast();
    let mut history = History::default();
    let disk = FaultDisk::new(factory.0.path());
    let storage = EmbeddedStorage::open(factory.0.path(), small()).unwrap();
    for effect in [Effect::DiskFull, Effect::ShortWrite] {
        disk.fail(Fault { call: Call::Write, file: ".db", after: 2, times: u64::MAX, effect });
        // The WAL has room, so no accepted write is refused; but health reports the failed checkpoint.
        let before = disk.failed();
        assert!(load(&storage, &mut history, 60).await.is_none());
        assert!(disk.failed() > before);
        disk.heal();
        assert!(load(&storage, &mut history, 60).await.is_none());
        assert_eq!(storage.health().await, Ok(()));
    }
    drop(storage);
    let storage = open(factory.0.path());
    history.check(&storage, history.newest(), "a database that could not grow").await;
}

#[tokio::test]
async fn a_failed_read_fails_that_read_only() {
    let factory = Embedded::fast();
    let mut history = History::default();
    let disk = FaultDisk::new(factory.0.path());
    let storage = EmbeddedStorage::open(factory.0.path(), small()).unwrap();
    assert!(load(&storage, &mut history, 60).await.is_none());
    for call in [Call::Read, Call::Open] {
        // A new connection, with an empty cache.
        storage.shared.readers.forget();
        disk.fail(Fault::every(call, Effect::IoError));
        let listed = storage.get_list(list_all()).await;
        assert!(matches!(listed, Err(StorageError::Engine(_))), "{call:?}: {listed:?}");
        disk.heal();
        history.check(&storage, history.newest(), "after a failed read").await;
    }
}

#[test]
fn a_store_that_cannot_be_opened_names_its_file() {
    let rows = [
        (Call::Open, ".db", Effect::IoError),
        (Call::Open, ".db", Effect::ReadOnly),
        (Call::Open, "-wal", Effect::IoError),
        (Call::Read, ".db", Effect::IoError),
    ];
    for (call, file, effect) in rows {
        let factory = Embedded::fast();
        drop(open(factory.0.path()));
        let before = Image::read(factory.0.path()).unwrap();
        let disk = FaultDisk::new(factory.0.path());
        disk.fail(Fault { call, file, after: 0, times: u64::MAX, effect });
        let opened = EmbeddedStorage::open(factory.0.path(), small()).map(drop);
        let error = opened.expect_err("it cannot be opened").to_string();
        let path = paths::database(factory.0.path());
        assert!(error.starts_with(&path.display().to_string()), "{call:?} of *{file}: {error}");
        assert!(
            Image::read(factory.0.path()).unwrap() == before,
            "{call:?} of *{file}: the store was changed"
        );
        disk.heal();
        drop(open(factory.0.path()));
    }
}

#[test]
fn a_store_that_cannot_be_made_leaves_nothing_behind_that_looks_like_one() {
    for (call, effect) in [
        (Call::Open, Effect::ReadOnly),
        (Call::Write, Effect::DiskFull),
        (Call::Write, Effect::IoError),
        (Call::Sync, Effect::IoError),
    ] {
        for after in 0..4 {
            let factory = Embedded::fast();
            let disk = FaultDisk::new(factory.0.path());
            disk.fail(Fault { call, file: "", after, times: u64::MAX, effect });
            let opened = EmbeddedStorage::open(factory.0.path(), small()).map(drop);
            if disk.failed() == 0 {
                continue;
            }
            let what = format!("{call:?} fails with {effect:?} after {after}");
            let Err(error) = opened else { panic!("{what}, and the store is made") };
            let error = error.to_string();
            assert!(error.starts_with(&factory.0.path().display().to_string()), "{error}");
            disk.heal();
            let storage = open(factory.0.path());
            assert_eq!(
                storage.shared.state.read().revision,
                Revision(1),
                "{call:?} {effect:?} after {after}"
            );
        }
    }
}
