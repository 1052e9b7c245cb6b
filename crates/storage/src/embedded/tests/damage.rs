//! Files that are not as they were left: refused with their path, and never replaced by something empty.

use super::*;
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
    let path = file::database_path(factory.0.path());
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA user_version = 2").unwrap();
    drop(connection);
    let error = refused(factory.0.path());
    assert!(matches!(&error, OpenError::UnknownFormat { found: 2, .. }), "{error}");
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
        let path = file::database_path(factory.0.path());
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
async fn a_log_without_its_database_is_refused() {
    let factory = store().await;
    fs::remove_file(file::database_path(factory.0.path())).unwrap();
    let error = refused(factory.0.path());
    assert!(
        matches!(&error, OpenError::Damaged { path, .. } if *path == file::log_path(factory.0.path())),
        "{error}"
    );
}

#[tokio::test]
async fn a_flipped_bit_in_a_value_is_an_error_for_that_value_only() {
    let factory = Embedded::new();
    let storage = open(factory.0.path());
    let good = Key::new("/r/good");
    let bad = Key::new("/r/bad");
    storage.create(&good, Bytes::from_static(b"intact"), None).await.unwrap();
    let revision = storage.create(&bad, Bytes::from_static(b"one certain value"), None).await.unwrap();
    storage.close().await.unwrap();
    drop(storage);
    let path = file::database_path(factory.0.path());
    let content = fs::read(&path).unwrap();
    let offset = content.windows(17).position(|bytes| bytes == b"one certain value").unwrap();
    overwrite(&path, offset as u64, b"0");

    let storage = open(factory.0.path());
    assert_eq!(storage.get(&good).await.unwrap().kv.unwrap().value, "intact");
    let read = storage.get(&bad).await;
    assert!(
        matches!(&read, Err(StorageError::Corrupt(what)) if what.contains(&revision.to_string())),
        "{read:?}"
    );
    let deleted = storage.delete(&bad, revision).await;
    assert!(matches!(&deleted, Err(WriteError::Storage(StorageError::Corrupt(_)))), "{deleted:?}");
    create(&storage, "/r/other", 10).await.unwrap();
}

#[tokio::test]
async fn a_flipped_bit_in_the_index_is_refused() {
    let factory = Embedded::new();
    let storage = open(factory.0.path());
    create(&storage, "/r/a-certain-key", 10).await.unwrap();
    storage.close().await.unwrap();
    drop(storage);
    let path = file::database_path(factory.0.path());
    let content = fs::read(&path).unwrap();
    let offset = content.windows(16).position(|bytes| bytes == b"/r/a-certain-key").unwrap();
    overwrite(&path, offset as u64 + 3, b"b");
    let error = refused(factory.0.path());
    assert!(matches!(&error, OpenError::Damaged { detail, .. } if detail.contains("revision 2")), "{error}");
}
