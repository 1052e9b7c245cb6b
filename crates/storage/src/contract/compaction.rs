//! The contract of compaction: the history that is dropped, and the state that is kept.

use super::*;

/// Writes three keys with history: `/r/a` is updated, `/r/b` is unchanged, `/r/c` is deleted. Returns the latest
/// revision.
async fn history(storage: &dyn Storage) -> Revision {
    let mut a = put(storage, "/r/a", "1").await;
    put(storage, "/r/b", "1").await;
    let c = put(storage, "/r/c", "1").await;
    for value in ["2", "3"] {
        a = set(storage, "/r/a", value, a).await;
    }
    remove(storage, "/r/c", c).await
}

/// Reads and watches from before the compaction fail, with the oldest revision kept.
pub async fn compaction_rejects_older_reads_and_watches(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let last = history(&*storage).await;
    let compacted = Revision(last.0 - 1);
    storage.compact(compacted).await.expect("compact");
    assert_eq!(storage.compacted_revision(), compacted);
    for older in [Revision(0), Revision(1), Revision(compacted.0 - 2)] {
        assert_compacted(storage.get_list(request_at("/r/", older)).await, compacted, "list");
        assert_compacted(storage.count(request_at("/r/", older)).await, compacted, "count");
        let request = WatchRequest { prefix: "/r/".to_owned(), after: older };
        let watch = storage.watch(request).await.map(|_| "a stream");
        assert_compacted(watch, compacted, "watch");
    }
    expect_list(&*storage, request_at("/r/", compacted), &[("/r/a", "3"), ("/r/b", "1"), ("/r/c", "1")])
        .await;
}

/// The latest values, and all later history, are kept.
pub async fn compaction_keeps_newest_values_and_later_history(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let last = history(&*storage).await;
    storage.compact(last).await.expect("compact");
    let later = put(&*storage, "/r/d", "1").await;
    let state: &[(&str, &str)] = &[("/r/a", "3"), ("/r/b", "1")];
    expect_list(&*storage, request_at("/r/", last), state).await;
    expect_list(&*storage, request("/r/"), &[state, &[("/r/d", "1")]].concat()).await;
    let mut stream = watch(&*storage, "/r/", last).await;
    assert_eq!(next_writes(&mut stream, 1).await, [event(EventKind::Create, "/r/d", "1", later)]);
    for (name, value) in [("/r/a", "3"), ("/r/b", "1")] {
        let kv = storage.get(&key(name)).await.expect("get").kv.expect("the key exists");
        assert_eq!(kv.value, value.into(), "{name}");
    }
    assert_eq!(storage.get(&key("/r/c")).await.expect("get").kv, None);
}

/// The event of a delete after the compaction has the value from before it.
pub async fn compaction_keeps_what_later_deletes_need(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let a = put(&*storage, "/r/a", "1").await;
    let b = put(&*storage, "/r/b", "1").await;
    let deleted = remove(&*storage, "/r/a", a).await;
    storage.compact(b).await.expect("compact");
    let mut stream = watch(&*storage, "/r/", b).await;
    assert_eq!(next_writes(&mut stream, 1).await, [event(EventKind::Delete, "/r/a", "1", deleted)]);
    let last = remove(&*storage, "/r/b", b).await;
    assert_eq!(next_writes(&mut stream, 1).await, [event(EventKind::Delete, "/r/b", "1", last)]);
}

/// `FutureRevision`, and no history is dropped.
pub async fn compaction_of_the_future_is_rejected(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let last = history(&*storage).await;
    let error = storage.compact(Revision(last.0 + 1)).await.expect_err("it has not happened yet");
    assert!(matches!(error, StorageError::FutureRevision { .. }), "{error}");
    expect_list(&*storage, request_at("/r/", Revision(last.0 - 5)), &[("/r/a", "1")]).await;
}

/// Compacting at the same or an older revision succeeds and drops no more.
pub async fn compaction_again_changes_nothing(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let last = history(&*storage).await;
    let compacted = Revision(last.0 - 1);
    for revision in [compacted, compacted, Revision(compacted.0 - 2)] {
        storage.compact(revision).await.expect("compact");
    }
    let state: &[(&str, &str)] = &[("/r/a", "3"), ("/r/b", "1"), ("/r/c", "1")];
    expect_list(&*storage, request_at("/r/", compacted), state).await;
    let older = storage.get_list(request_at("/r/", Revision(compacted.0 - 2))).await;
    assert_compacted(older, compacted, "list");
}

/// Writers, readers and watches go on beside compactions, and none loses anything.
pub async fn compaction_beside_writers_loses_nothing(factory: &dyn StorageFactory) {
    const KEYS: usize = 20;
    let storage = factory.open().await;
    let name = |number: usize| format!("/r/{number:02}");
    let start = current(&*storage).await;
    let mut stream = watch(&*storage, "/r/", start).await;
    let writers: Vec<_> = (0..KEYS)
        .map(|number| {
            let (storage, name) = (storage.clone(), name(number));
            tokio::spawn(async move {
                let mut at = put(&*storage, &name, "0").await;
                for round in 1..30 {
                    at = match round % 5 {
                        0 => {
                            remove(&*storage, &name, at).await;
                            put(&*storage, &name, &round.to_string()).await
                        }
                        _ => set(&*storage, &name, &round.to_string(), at).await,
                    };
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    while writers.iter().any(|writer| !writer.is_finished()) {
        storage.compact(current(&*storage).await).await.expect("compact");
        let all = storage.get_list(request("/r/")).await.expect("a list");
        let count = storage.count(request_at("/r/", all.revision)).await.expect("a count");
        assert_eq!(count, all.items.len());
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.expect("a writer");
    }
    let last = current(&*storage).await;
    storage.compact(last).await.expect("compact");
    let names: Vec<String> = (0..KEYS).map(name).collect();
    let expected: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "29")).collect();
    expect_list(&*storage, request("/r/"), &expected).await;
    // Each writer has made 30 writes, and 5 deletes before some of them.
    assert_eq!(writes_until(&mut stream, &*storage, last).await.len(), KEYS * 35);
}

/// After a compaction, a key that was rewritten many times takes the space of its latest value: the space is reused.
pub async fn compaction_reduces_what_was_rewritten(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let value = "x".repeat(200_000);
    let mut last = put(&*storage, "/r/a", &value).await;
    let mut sizes = Vec::new();
    for _ in 0..40 {
        for _ in 0..10 {
            last = set(&*storage, "/r/a", &value, last).await;
        }
        storage.compact(last).await.expect("compact");
        sizes.push(storage.size().await.expect("size"));
    }
    let written = 40 * 10 * value.len() as u64;
    let largest = sizes.iter().max().copied().unwrap_or_default();
    assert!(largest > 0 && largest < written / 2, "{sizes:?} of {written} bytes written");
    expect_list(&*storage, request("/r/"), &[("/r/a", &value)]).await;
}
