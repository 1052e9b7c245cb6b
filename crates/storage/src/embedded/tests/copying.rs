//! The log is copied while writers go on.

use super::*;

const LOG_BYTES: u64 = 1 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_is_copied_and_used_again_under_writers_who_never_pause() {
    let directory = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions { log_bytes: LOG_BYTES, ..EmbeddedOptions::default() };
    let storage = Arc::new(EmbeddedStorage::open(directory.path(), options).unwrap());
    // Enough for dozens of logs.
    let writers = (0..16).map(|writer| {
        let storage = Arc::clone(&storage);
        tokio::spawn(async move {
            for number in 0..200 {
                create(&storage, &format!("/{writer}/{number:03}"), 8_000).await.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let log = fs::metadata(file::log_path(directory.path())).unwrap().len();
    assert!(log < LOG_BYTES * 10, "the log has {log} bytes");

    let copied = fs::metadata(file::database_path(directory.path())).unwrap().len();
    assert!(copied > 16 * 200 * 8_000 / 2, "the database has {copied} bytes");
    // As a crash leaves it: without the copy that closing makes.
    let image = tempfile::tempdir().unwrap();
    for path in [file::database_path, file::log_path] {
        let name = path(directory.path());
        fs::copy(&name, image.path().join(name.file_name().unwrap())).unwrap();
    }
    let list = open(image.path()).get_list(list_all()).await.unwrap();
    assert_eq!(list.items.len(), 16 * 200);
    storage.close().await.unwrap();
    let list = open(directory.path()).get_list(list_all()).await.unwrap();
    assert_eq!(list.items.len(), 16 * 200);
}
