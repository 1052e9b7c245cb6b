//! Tests damaged and missing files: they are refused with their path, and never replaced by empty ones.

use super::{
    history::{History, value},
    *,
};
use crate::{EventKind, StorageEvent, WatchRequest};
use pintle_fault_vfs::{Image, Random};
use std::io::{Seek, SeekFrom, Write};

/// A closed store with a few objects.
async fn store() -> Embedded {
    let factory = Embedded::new();
    let storage = open(factory.0.path());
    for object in 0..50 {
        create(&storage, &format!("/r/{object}"), 3_000).await.unwrap();
    }
    storage.close().await.unwrap();
    factory
}

fn refused(directory: &Path) -> OpenError {
    let opened = EmbeddedStorage::open(directory, EmbeddedOptions::default()).map(drop);
    opened.expect_err("it is damaged")
}

fn overwrite(path: &Path, offset: u64, bytes: &[u8]) {
    let mut file = fs::File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.write_all(bytes).unwrap();
}

#[tokio::test]
async fn an_unknown_format_is_refused_with_its_path() {
    let factory = store().await;
    let path = paths::database(factory.0.path());
    let connection = rusqlite::Connection::open(&path).unwrap();
    let unknown = schema::FORMAT_VERSION + 1;
    connection.execute_batch(&format!("PRAGMA user_version = {unknown}")).unwrap();
    drop(connection);
    let error = refused(factory.0.path());
    assert!(matches!(&error, OpenError::UnknownFormat { found, .. } if *found == unknown), "{error}");
    assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
}

#[tokio::test]
async fn damaged_files_are_refused_and_left_alone() {
    type Damage = fn(&Path);
    let rows: &[(&str, Damage)] = &[
        ("emptied", |path| fs::write(path, b"").unwrap()),
        ("something else", |path| fs::write(path, vec![b'#'; 20_000]).unwrap()),
        ("header overwritten", |path| overwrite(path, 0, &[0; 100])),
        ("cut", |path| fs::File::options().write(true).open(path).unwrap().set_len(8192 * 3).unwrap()),
        ("another database", |path| {
            fs::remove_file(path).unwrap();
            let connection = rusqlite::Connection::open(path).unwrap();
            connection.execute_batch("CREATE TABLE t (a)").unwrap();
        }),
    ];
    for (what, damage) in rows {
        let factory = store().await;
        let path = paths::database(factory.0.path());
        damage(&path);
        let before = fs::read(&path).unwrap();
        let error = refused(factory.0.path());
        assert!(
            matches!(&error, OpenError::Damaged { path: named, .. } if *named == path),
            "{what}: {error}"
        );
        assert!(fs::read(&path).unwrap() == before, "{what}: the file was changed");
    }
}

#[tokio::test]
async fn a_log_or_a_journal_without_its_database_is_refused() {
    for with_log in [true, false] {
        let factory = Embedded::new();
        let storage = open(factory.0.path());
        create(&storage, "/r/a", 10).await.unwrap();
        settled(&storage).await;
        let image = Image::read(factory.0.path()).unwrap();
        drop(storage);
        image.write(factory.0.path()).unwrap();
        fs::remove_file(paths::database(factory.0.path())).unwrap();
        let mut named = paths::wal(factory.0.path());
        if !with_log {
            fs::remove_file(named).unwrap();
            named = first_segment(factory.0.path());
        }
        let error = refused(factory.0.path());
        assert!(matches!(&error, OpenError::Damaged { path, .. } if *path == named), "{error}");
    }
}

#[tokio::test]
async fn a_flipped_bit_in_a_value_is_an_error_for_that_value_only() {
    let factory = Embedded::new();
    let storage = open(factory.0.path());
    let good = Key::new("/r/good");
    let bad = Key::new("/r/bad");
    storage.create(&good, Bytes::from_static(b"intact").into(), None).await.unwrap();
    let revision = storage.create(&bad, Bytes::from_static(b"one certain value").into(), None).await.unwrap();
    storage.close().await.unwrap();
    drop(storage);
    let path = paths::database(factory.0.path());
    let content = fs::read(&path).unwrap();
    let offset = content.windows(17).position(|bytes| bytes == b"one certain value").unwrap();
    overwrite(&path, offset as u64, b"0");

    let storage = open(factory.0.path());
    assert_eq!(storage.get(&good).await.unwrap().kv.unwrap().value, "intact".into());
    let read = storage.get(&bad).await;
    assert!(
        matches!(&read, Err(StorageError::Corrupt(what)) if what.contains(&revision.to_string())),
        "{read:?}"
    );
    assert_near(&read.unwrap_err().to_string(), &path, offset);
    let deleted = storage.delete(&bad, revision).await;
    assert!(matches!(&deleted, Err(WriteError::Storage(StorageError::Corrupt(_)))), "{deleted:?}");
    // A caller that has the value spares the store the read.
    let mut stream = storage.watch(WatchRequest { prefix: "/r/".into(), after: revision }).await.unwrap();
    storage.delete_existing(&bad, revision, "one certain value".into()).await.unwrap();
    match stream.next_batch().await.unwrap().pop() {
        Some(crate::StorageEvent::Write { kv, .. }) => assert_eq!(kv.value, "one certain value".into()),
        event => panic!("{event:?}"),
    }
    create(&storage, "/r/other", 10).await.unwrap();
}

#[tokio::test]
async fn a_key_whose_value_is_damaged_expires() {
    let factory = Embedded::new();
    let storage = open(factory.0.path());
    let key = Key::new("/r/event");
    let ttl = Some(Duration::from_secs(2));
    storage.create(&key, Bytes::from_static(b"one certain value").into(), ttl).await.unwrap();
    storage.close().await.unwrap();
    drop(storage);
    let path = paths::database(factory.0.path());
    let content = fs::read(&path).unwrap();
    let offset = content.windows(17).position(|bytes| bytes == b"one certain value").unwrap();
    overwrite(&path, offset as u64, b"0");

    let storage = open(factory.0.path());
    let request = WatchRequest { prefix: "/r/".to_owned(), after: storage.current_revision().await.unwrap() };
    let mut watch = storage.watch(request).await.unwrap();
    let batch = tokio::time::timeout(Duration::from_secs(30), watch.next_batch()).await.unwrap().unwrap();
    assert!(
        matches!(&batch[..], [StorageEvent::Write { kind: EventKind::Delete, kv, .. }] if kv.key == key),
        "{batch:?}"
    );
    assert!(storage.get(&key).await.unwrap().kv.is_none());
}

/// The message names the file, and the start of the damaged row.
fn assert_near(message: &str, path: &Path, damage: usize) {
    assert!(message.contains(&path.display().to_string()), "{message}");
    let (_, rest) = message.split_once("at offset ").unwrap_or_else(|| panic!("{message}"));
    let told: usize = rest.split(':').next().unwrap().parse().unwrap();
    assert!((damage - 40..damage).contains(&told), "{message}; it is at {damage}");
}

#[tokio::test]
async fn a_flipped_bit_in_the_index_is_refused() {
    let factory = Embedded::new();
    let storage = open(factory.0.path());
    create(&storage, "/r/a-certain-key", 10).await.unwrap();
    storage.close().await.unwrap();
    drop(storage);
    let path = paths::database(factory.0.path());
    let content = fs::read(&path).unwrap();
    let offset = content.windows(16).position(|bytes| bytes == b"/r/a-certain-key").unwrap();
    overwrite(&path, offset as u64 + 3, b"b");
    let error = refused(factory.0.path());
    assert!(matches!(&error, OpenError::Damaged { detail, .. } if detail.contains("revision 2")), "{error}");
    assert_near(&error.to_string(), &path, offset);
}

/// A store with a sample of everything: trees of several levels, free pages, kept rows, a compaction, and, with
/// `with_log`, a WAL of the newest writes. Returns its history and its files.
async fn original(with_log: bool) -> (History, Image) {
    let factory = Embedded::fast();
    let storage = open(factory.0.path());
    let mut history = History::default();
    let mut current = std::collections::BTreeMap::new();
    let mut random = Random::new(5);
    for number in 0..700_u64 {
        if number == 550 {
            let compacted = Revision(400);
            storage.compact(compacted).await.unwrap();
            if with_log {
                // The following writes are in the WAL only.
                storage.close().await.unwrap();
                return Box::pin(newest_in_log(factory, history)).await;
            }
        }
        let key = Key::new(format!("/registry/things/{}", random.below(300)));
        let size = [20, 900, 3_000, 12_000][random.below(4) as usize];
        let value = value(7, number, size);
        let revision = match current.get(&key) {
            None => storage.create(&key, value.into(), None).await,
            Some(expected) if random.below(3) == 0 => storage.delete(&key, *expected).await,
            Some(expected) => storage.update(&key, value.into(), *expected, None).await,
        };
        let exists = storage.get(&key).await.unwrap().kv.is_some();
        current.remove(&key);
        if exists {
            current.insert(key, revision.unwrap());
        }
        if number % 50 == 49 && number < 550 {
            history.resume(&storage).await;
        }
    }
    history.resume(&storage).await;
    storage.close().await.unwrap();
    (history, Image::read(factory.0.path()).unwrap())
}

async fn newest_in_log(factory: Embedded, mut history: History) -> (History, Image) {
    let storage = open(factory.0.path());
    for number in 0..40 {
        let key = Key::new(format!("/registry/new/{number}"));
        storage.create(&key, value(8, number, 2_000).into(), None).await.unwrap();
    }
    history.resume(&storage).await;
    settled(&storage).await;
    (history, Image::read(factory.0.path()).unwrap())
}

/// Reads everything, one piece at a time. Reported damage is accepted, a wrong answer fails the test. Returns the
/// number of failed reads.
async fn read_all(storage: &EmbeddedStorage, history: &History, what: &str) -> u32 {
    let newest = storage.current_revision().await.unwrap();
    assert!(newest <= history.newest(), "{what}: {newest} was never written");
    let corrupt = |error: StorageError| match error {
        StorageError::Corrupt(_) | StorageError::Engine(_) => 1,
        error => panic!("{what}: {error}"),
    };
    let mut failed = 0;
    let mut found = 0;
    let right = history.at(newest);
    for (key, kv) in &right {
        match storage.get(key).await {
            Ok(response) => {
                assert!(response.kv.as_ref() == Some(kv), "{what}: {key} is not what was written");
                found += 1;
            }
            Err(error) => failed += corrupt(error),
        }
    }
    match storage.get_list(list_all()).await {
        Ok(list) => {
            assert_eq!((list.items.len(), found), (right.len(), right.len()), "{what}: the list");
            assert!(list.items.iter().eq(right.values()), "{what}: the list");
        }
        Err(error) => failed += corrupt(error),
    }
    let after = storage.shared.state.read().compacted;
    let mut stream = storage.watch(WatchRequest { prefix: String::new(), after }).await.unwrap();
    let mut reached = after;
    'history: while reached < newest {
        for event in stream.next_batch().await.unwrap() {
            match event {
                crate::StorageEvent::Write { kind, revision, kv } => {
                    assert_eq!(revision.0, reached.0 + 1, "{what}: a hole in history");
                    assert!(
                        history.events.get(&revision) == Some(&(kind, kv)),
                        "{what}: history at {revision}"
                    );
                    reached = revision;
                }
                crate::StorageEvent::Error(error) => {
                    failed += corrupt(error);
                    break 'history;
                }
                crate::StorageEvent::Progress(_) => {}
            }
        }
    }
    failed
}

const JOURNAL: &str = "pintle-1.journal";

/// Damages a file at an offset; the number is random.
type Damage = fn(&mut Vec<u8>, usize, u64);

const DAMAGES: &[(&str, Damage)] = &[
    ("a flipped bit", |bytes, at, random| bytes[at] ^= 1 << (random % 8)),
    ("another byte", |bytes, at, random| bytes[at] = (random >> 8) as u8),
    ("a sector of zeros", |bytes, at, _| {
        let start = at / 512 * 512;
        let end = bytes.len().min(start + 512);
        bytes[start..end].fill(0);
    }),
    ("a page of another place", |bytes, at, random| {
        let pages = bytes.len() / 8192;
        let (to, from) = (at / 8192, random as usize % pages.max(1));
        if to < pages {
            let page = bytes[from * 8192..][..8192].to_vec();
            bytes[to * 8192..][..8192].copy_from_slice(&page);
        }
    }),
    ("cut", |bytes, at, _| bytes.truncate(at)),
];

/// Larger than any batch of these tests, in bytes.
const LARGEST_BATCH: u64 = 16 << 10;

/// Damages files at `PINTLE_DAMAGES` places.
async fn damage_everywhere(with_log: bool, file: &str) {
    let (history, mut image) = original(with_log).await;
    if file == JOURNAL {
        // Only the journal has the newest writes then.
        image.files.remove("pintle.db-wal");
    }
    assert!(image.files["pintle.db"].len() > 1 << 20, "trees of several levels");
    let written = image.files[file].iter().rposition(|byte| *byte != 0).unwrap_or_default() as u64;
    let factory = Embedded::fast();
    let count = std::env::var("PINTLE_DAMAGES").map_or(400, |count| count.parse().unwrap());
    let (mut refused, mut told, mut harmless) = (0, 0, 0);
    for seed in 0..count {
        let mut random = Random::new(seed);
        let (damage, apply) = DAMAGES[random.below(9) as usize % DAMAGES.len()];
        let mut damaged = image.clone();
        let bytes = damaged.files.get_mut(file).unwrap();
        // The starts of pages lead to everything else, so half of the damage is there.
        let mut at = random.below(bytes.len() as u64);
        if random.below(2) == 0 {
            at = at / 8192 * 8192 + random.below(32).min(bytes.len() as u64 - at / 8192 * 8192 - 1);
        }
        let what = format!("{damage} at {at} of {file}, seed {seed}");
        apply(bytes, at as usize, random.number());
        if damaged == image {
            continue;
        }
        damaged.write(factory.0.path()).unwrap();
        match EmbeddedStorage::open(factory.0.path(), EmbeddedOptions::default()) {
            Err(error) => {
                refused += 1;
                let error = error.to_string();
                assert!(error.contains("/pintle"), "{what}: {error}");
                assert!(error.contains(" offset ") || damage == "cut", "{what}: {error}");
                // No file was emptied, truncated or repaired.
                let left = Image::read(factory.0.path()).unwrap();
                assert!(
                    left.files["pintle.db"] == damaged.files["pintle.db"],
                    "{what}: the database was changed"
                );
            }
            Ok(storage) => {
                let newest = storage.current_revision().await.unwrap();
                match file {
                    // Only the journal's contents mark its end.
                    JOURNAL if damage == "cut" => {}
                    // The same applies to a page that covers the start of the last batch.
                    JOURNAL
                        if damage == "a page of another place"
                            && (at / 8192 + 1) * 8192 + LARGEST_BATCH >= written => {}
                    // The last batch may have been truncated.
                    JOURNAL => assert!(newest.0 + 1 >= history.newest().0, "{what}: {newest}"),
                    // Damage to the WAL loses no write, because the journal has them.
                    _ => assert_eq!(newest, history.newest(), "{what}"),
                }
                let failed = read_all(&storage, &history, &what).await;
                told += usize::from(failed > 0);
                harmless += usize::from(failed == 0);
                // After further writes, reads still return the right values or report damage.
                let _ = create(&storage, "/registry/other", 9_000).await;
                let mut history = history.clone();
                if storage.current_revision().await.unwrap() > newest {
                    history.events.retain(|at, _| *at <= newest);
                    let mut stream =
                        storage.watch(WatchRequest { prefix: String::new(), after: newest }).await.unwrap();
                    history.follow(&mut stream, Revision(newest.0 + 1)).await;
                }
                read_all(&storage, &history, &what).await;
            }
        }
    }
    eprintln!("{file}: of {count} damages {refused} refused, {told} told by a read, {harmless} harmless");
    assert!(refused > count as usize / 20 || file == "pintle.db-wal");
}

#[tokio::test]
async fn damage_to_the_database_is_refused_or_told_and_never_read() {
    damage_everywhere(false, "pintle.db").await;
}

#[tokio::test]
async fn damage_to_a_database_with_a_log_is_refused_or_told_and_never_read() {
    damage_everywhere(true, "pintle.db").await;
}

#[tokio::test]
async fn damage_to_a_log_is_refused_or_told_and_never_read() {
    damage_everywhere(true, "pintle.db-wal").await;
}

#[tokio::test]
async fn damage_to_a_journal_is_refused_or_told_and_never_read() {
    damage_everywhere(true, JOURNAL).await;
}
