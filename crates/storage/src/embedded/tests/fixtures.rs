//! Tests stores of earlier programs, in `tests/fixtures`: every later program opens them and reads their contents.
//!
//! A fixture is a folder with the compressed files of a store, and `content.txt` with the contents that the program
//! which made it read from them. Fixtures are added for a new format version, and never regenerated: the output of
//! today's program is no evidence of an earlier one's. To add those of a new version:
//!
//! ```text
//! cargo test -p pintle-storage --lib -- --ignored make_fixtures
//! ```

use super::*;
use crate::{EventKind, StorageEvent};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use std::{
    fmt::Write as _,
    io::{Read, Write},
};

const FILES: [&str; 4] = ["pintle.db", "pintle.db-wal", "pintle-0.journal", "pintle-1.journal"];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// The store of a fixture, in its own directory.
fn unpack(fixture: &Path) -> Embedded {
    let copy = Embedded::new();
    for name in FILES {
        let packed = fixture.join(format!("{name}.gz"));
        if packed.exists() {
            let mut bytes = Vec::new();
            GzDecoder::new(fs::File::open(&packed).unwrap()).read_to_end(&mut bytes).unwrap();
            fs::write(copy.0.path().join(name), bytes).unwrap();
        }
    }
    copy
}

/// Everything readable, as text: the latest state, and every event since the compaction.
async fn content(storage: &EmbeddedStorage) -> String {
    let compacted = storage.shared.state.read().compacted;
    let revision = storage.current_revision().await.unwrap();
    let mut text = format!("compacted {compacted}\n");
    let pair = |kv: &crate::KeyValue| {
        let (value, crc) = (&kv.value, crc32fast::hash(&kv.value));
        format!("{} {} {} {} {crc:08x}", kv.key, kv.create_revision, kv.mod_revision, value.len())
    };
    for kv in storage.get_list(list_all()).await.unwrap().items {
        writeln!(text, "pair {}", pair(&kv)).unwrap();
    }
    let request = WatchRequest { prefix: String::new(), after: compacted };
    let mut stream = storage.watch(request).await.unwrap();
    storage.request_progress().await.unwrap();
    loop {
        for event in stream.next_batch().await.unwrap() {
            match event {
                StorageEvent::Write { kind, revision, kv } => {
                    let kind = match kind {
                        EventKind::Create => "create",
                        EventKind::Update => "update",
                        EventKind::Delete => "delete",
                    };
                    writeln!(text, "event {revision} {kind} {}", pair(&kv)).unwrap();
                }
                StorageEvent::Progress(reached) if reached >= revision => return text,
                StorageEvent::Progress(_) => {}
                StorageEvent::Error(error) => panic!("{error}"),
            }
        }
    }
}

#[tokio::test]
async fn stores_of_every_format_open_with_what_was_in_them() {
    let mut checked = 0;
    for format in 1..=schema::FORMAT_VERSION {
        let version = fixtures().join(format!("format-v{format}"));
        for fixture in fs::read_dir(version).unwrap().map(|entry| entry.unwrap().path()) {
            let copy = unpack(&fixture);
            let expected = fs::read_to_string(fixture.join("content.txt")).unwrap();
            let storage = open(copy.0.path());
            if fixture.ends_with("ttls") {
                // It had expired long before the store was opened.
                expired(&storage, "/r/soon").await;
            }
            assert_eq!(content(&storage).await, expected, "{}", fixture.display());
            // The opened store accepts writes and compactions.
            let last = create(&storage, "/new/key", 100).await.unwrap();
            storage.compact(last).await.unwrap();
            storage.close().await.unwrap();
            drop(storage);
            let storage = open(copy.0.path());
            assert_eq!(storage.current_revision().await, Ok(last), "{}", fixture.display());
            checked += 1;
        }
    }
    assert!(checked >= 7 * schema::FORMAT_VERSION, "only {checked} fixtures");
}

async fn expired(storage: &EmbeddedStorage, name: &str) {
    while storage.get(&Key::new(name)).await.unwrap().kv.is_some() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A few writes of every kind: values from empty to several pages, a key that is not ASCII, a key that is created
/// again.
async fn fill(storage: &EmbeddedStorage) -> Revision {
    for (number, size) in [0, 1, 100, 3_000, 8_192, 30_000].into_iter().enumerate() {
        let value = Bytes::from((0..size).map(|byte| (byte % 251) as u8).collect::<Vec<_>>());
        storage.create(&Key::new(format!("/r/{number}")), value.into(), None).await.unwrap();
    }
    let odd = create(storage, "/r/schlüssel\u{1f511}", 10).await.unwrap();
    let odd =
        storage.update(&Key::new("/r/schlüssel\u{1f511}"), Bytes::from_static(b"\0\xff").into(), odd, None);
    odd.await.unwrap();
    let again = Key::new("/r/again");
    let first = storage.create(&again, Bytes::from_static(b"one").into(), None).await.unwrap();
    storage.delete(&again, first).await.unwrap();
    let second = storage.create(&again, Bytes::from_static(b"two").into(), None).await.unwrap();
    let gone = create(storage, "/r/gone", 500).await.unwrap();
    storage.delete(&Key::new("/r/gone"), gone).await.unwrap();
    storage.update(&again, Bytes::from_static(b"three").into(), second, None).await.unwrap()
}

/// Packs the files of a store, with the contents read from them.
async fn pack(directory: &Path, name: &str) {
    let version = fixtures().join(format!("format-v{}", schema::FORMAT_VERSION));
    let fixture = version.join(name);
    if fixture.exists() {
        return;
    }
    fs::create_dir_all(&fixture).unwrap();
    for name in FILES {
        if let Ok(bytes) = fs::read(directory.join(name))
            && !bytes.is_empty()
        {
            let packed = fs::File::create(fixture.join(format!("{name}.gz"))).unwrap();
            let mut packed = GzEncoder::new(packed, Compression::best());
            packed.write_all(&bytes).unwrap();
            packed.finish().unwrap();
        }
    }
    let copy = unpack(&fixture);
    let storage = open(copy.0.path());
    if name == "ttls" {
        expired(&storage, "/r/soon").await;
    }
    fs::write(fixture.join("content.txt"), content(&storage).await).unwrap();
}

#[tokio::test]
#[ignore = "fixtures are made once, by the first program of a format version"]
async fn make_fixtures() {
    let factory = Embedded::new();
    let storage = open(factory.0.path());
    let last = fill(&storage).await;
    // The state after a crash: everything is in the WAL and in the journal.
    settled(&storage).await;
    pack(factory.0.path(), "crashed").await;
    let next = create(&storage, "/r/torn", 20_000).await.unwrap();
    let journal = fs::read(first_segment(factory.0.path())).unwrap();
    // The state after a power cut: the WAL is empty, and the last batch is truncated.
    for (name, cut) in [("not-in-the-database", 0), ("torn", 9_000)] {
        let torn = Embedded::new();
        fs::copy(paths::database(factory.0.path()), paths::database(torn.0.path())).unwrap();
        let end = batches(&journal).last().unwrap().1 as usize;
        fs::write(first_segment(torn.0.path()), &journal[..end - cut]).unwrap();
        pack(torn.0.path(), name).await;
    }
    storage.close().await.unwrap();
    drop(storage);
    pack(factory.0.path(), "closed").await;

    // Killed when the compaction was recorded and its oldest row deleted.
    let copy = Embedded::new();
    fs::copy(paths::database(factory.0.path()), paths::database(copy.0.path())).unwrap();
    let connection = rusqlite::Connection::open(paths::database(copy.0.path())).unwrap();
    let mut meta = meta::Meta::read(&connection).unwrap().unwrap().compacted_at(last, next);
    row::delete(&connection, Revision(8), Revision(8)).unwrap();
    meta.kept.remove(Revision(8));
    meta.write(&connection).unwrap();
    connection.close().unwrap();
    pack(copy.0.path(), "compaction-cut-short").await;

    let storage = open(factory.0.path());
    storage.compact(last).await.unwrap();
    storage.close().await.unwrap();
    pack(factory.0.path(), "compacted").await;

    // The newest writes are deletes that are compacted: only the table `meta` has the revision.
    let storage = open(factory.0.path());
    let last = storage.delete(&Key::new("/r/torn"), next).await.unwrap();
    storage.compact(last).await.unwrap();
    storage.close().await.unwrap();
    pack(factory.0.path(), "newest-compacted").await;

    let factory = Embedded::new();
    let storage = open(factory.0.path());
    fill(&storage).await;
    let value = Bytes::from_static(b"for a while");
    for (name, seconds) in [("/r/soon", 1), ("/r/in-a-century", 100 * 365 * 86_400)] {
        let ttl = Some(Duration::from_secs(seconds));
        storage.create(&Key::new(name), value.clone().into(), ttl).await.unwrap();
    }
    settled(&storage).await;
    pack(factory.0.path(), "ttls").await;
}
