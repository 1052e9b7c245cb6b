//! The contract of durable engines: the state that outlives the process.

use super::*;

/// Closes and opens the store again.
async fn reopen(factory: &dyn StorageFactory, storage: Arc<dyn Storage>) -> Arc<dyn Storage> {
    storage.close().await.expect("close");
    drop(storage);
    factory.open().await
}

/// Values, both revisions, deletions and the revision counter are kept.
pub async fn reopen_keeps_values_and_revisions(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let a = put(&*storage, "/r/a", "1").await;
    let b = put(&*storage, "/r/b", "1").await;
    set(&*storage, "/r/a", "2", a).await;
    remove(&*storage, "/r/b", b).await;
    let before = storage.get(&key("/r/a")).await.expect("get");
    let storage = reopen(factory, storage).await;
    assert_eq!(storage.get(&key("/r/a")).await.expect("get"), before);
    assert_eq!(storage.get(&key("/r/b")).await.expect("get").kv, None);
    assert_eq!(current(&*storage).await, before.revision);
}

/// Lists at old revisions, and watches from them, work after a restart.
pub async fn reopen_keeps_history(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let start = current(&*storage).await;
    let first = put(&*storage, "/r/a", "1").await;
    let second = set(&*storage, "/r/a", "2", first).await;
    let third = remove(&*storage, "/r/a", second).await;
    let storage = reopen(factory, storage).await;
    expect_list(&*storage, request_at("/r/", first), &[("/r/a", "1")]).await;
    expect_list(&*storage, request_at("/r/", second), &[("/r/a", "2")]).await;
    expect_list(&*storage, request_at("/r/", third), &[]).await;
    let mut stream = watch(&*storage, "/r/", start).await;
    let fourth = put(&*storage, "/r/a", "3").await;
    let history = [
        event(EventKind::Create, "/r/a", "1", first),
        event(EventKind::Update, "/r/a", "2", second),
        event(EventKind::Delete, "/r/a", "2", third),
        event(EventKind::Create, "/r/a", "3", fourth),
    ];
    assert_eq!(next_writes(&mut stream, 4).await, history);
}

/// Compacted history stays compacted, later history is kept.
pub async fn reopen_keeps_compaction(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let a = put(&*storage, "/r/a", "1").await;
    let b = put(&*storage, "/r/b", "1").await;
    let updated = set(&*storage, "/r/a", "2", a).await;
    let deleted = remove(&*storage, "/r/b", b).await;
    storage.compact(updated).await.expect("compact");
    let storage = reopen(factory, storage).await;
    assert_compacted(storage.get_list(request_at("/r/", a)).await, updated, "list");
    let request = WatchRequest { prefix: "/r/".to_owned(), after: a };
    assert_compacted(storage.watch(request).await.map(|_| "a stream"), updated, "watch");
    expect_list(&*storage, request_at("/r/", updated), &[("/r/a", "2"), ("/r/b", "1")]).await;
    let mut stream = watch(&*storage, "/r/", updated).await;
    assert_eq!(next_writes(&mut stream, 1).await, [event(EventKind::Delete, "/r/b", "1", deleted)]);
}

/// Revisions continue, even when the latest writes were deletes that are compacted.
pub async fn reopen_never_reuses_a_revision(factory: &dyn StorageFactory) {
    let mut storage = factory.open().await;
    let mut last = current(&*storage).await;
    for _ in 0..3 {
        let created = put(&*storage, "/r/a", "1").await;
        assert_eq!(created.0, last.0 + 1);
        last = remove(&*storage, "/r/a", created).await;
        storage.compact(last).await.expect("compact");
        storage = reopen(factory, storage).await;
        assert_eq!(current(&*storage).await, last);
    }
}

/// A key still expires after a restart, also when its expiry was during the downtime.
pub async fn reopen_keeps_ttls(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let value = Bytes::from_static(b"1");
    for (name, seconds) in [("/r/soon", 1), ("/r/later", 3600)] {
        let ttl = Some(Duration::from_secs(seconds));
        storage.create(&key(name), value.clone().into(), ttl).await.expect("create");
    }
    let start = current(&*storage).await;
    let storage = reopen(factory, storage).await;
    let mut stream = watch(&*storage, "/r/", start).await;
    let deleted = event(EventKind::Delete, "/r/soon", "1", Revision(start.0 + 1));
    assert_eq!(next_writes(&mut stream, 1).await, [deleted]);

    storage.create(&key("/r/missed"), value.into(), Some(Duration::from_millis(200))).await.expect("create");
    let start = current(&*storage).await;
    storage.close().await.expect("close");
    drop(storage);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let storage = factory.open().await;
    let mut stream = watch(&*storage, "/r/", start).await;
    let deleted = event(EventKind::Delete, "/r/missed", "1", Revision(start.0 + 1));
    assert_eq!(next_writes(&mut stream, 1).await, [deleted]);
    expect_list(&*storage, request("/r/"), &[("/r/later", "1")]).await;
}

/// A watcher that resumes from the last revision it saw gets the later events, once.
pub async fn reopen_resumes_watches_without_gap_or_duplicate(factory: &dyn StorageFactory) {
    let mut storage = factory.open().await;
    let start = current(&*storage).await;
    let mut revisions = Vec::new();
    for round in 0..4 {
        let resume = revisions.last().map_or(start, |last| Revision(*last));
        let mut stream = watch(&*storage, "/r/", resume).await;
        for object in 0..10 {
            put(&*storage, &format!("/r/{round}/{object}"), "1").await;
        }
        // Leaves some events unread, which the next round has to read from history.
        let batch = next_batch(&mut stream).await.expect("open");
        let keep = batch.len().div_ceil(2);
        revisions.extend(batch.into_iter().take(keep).filter_map(seen).map(|write| write.3.0));
        drop(stream);
        storage = reopen(factory, storage).await;
    }
    let resume = revisions.last().map_or(start, |last| Revision(*last));
    let mut stream = watch(&*storage, "/r/", resume).await;
    let last = current(&*storage).await;
    revisions.extend(writes_until(&mut stream, &*storage, last).await.into_iter().map(|write| write.3.0));
    assert_eq!(revisions, (start.0 + 1..=last.0).collect::<Vec<_>>());
}

/// A paged list that began before a restart continues at the same revision, regardless of later writes.
pub async fn reopen_goes_on_with_pages(factory: &dyn StorageFactory) {
    let mut storage = factory.open().await;
    for name in ["/r/a", "/r/b", "/r/c", "/r/d", "/r/e"] {
        put(&*storage, name, "1").await;
    }
    let first = storage.get_list(ListRequest { limit: 2, ..request("/r/") }).await.expect("the first page");
    assert_eq!((pairs(&first), first.more), (owned(&[("/r/a", "1"), ("/r/b", "1")]), true));
    let c = storage.get(&key("/r/c")).await.expect("get").kv.expect("it is there");
    remove(&*storage, "/r/c", c.mod_revision).await;
    for (after, expected, more) in
        [("/r/b", &[("/r/c", "1"), ("/r/d", "1")][..], true), ("/r/d", &[("/r/e", "1")], false)]
    {
        storage = reopen(factory, storage).await;
        put(&*storage, &format!("{after}-later"), "1").await;
        let page =
            ListRequest { start_after: Some(key(after)), limit: 2, ..request_at("/r/", first.revision) };
        let page = expect_list(&*storage, page, expected).await;
        assert_eq!((page.more, page.revision), (more, first.revision));
    }
}

/// The event of a delete has the value that was written and compacted before the restart.
pub async fn reopen_keeps_what_later_deletes_need(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let a = put(&*storage, "/r/a", "1").await;
    let a = set(&*storage, "/r/a", "2", a).await;
    let last = put(&*storage, "/r/b", "1").await;
    storage.compact(last).await.expect("compact");
    let storage = reopen(factory, storage).await;
    let deleted = remove(&*storage, "/r/a", a).await;
    let storage = reopen(factory, storage).await;
    let mut stream = watch(&*storage, "/r/", last).await;
    assert_eq!(next_writes(&mut stream, 1).await, [event(EventKind::Delete, "/r/a", "2", deleted)]);
    expect_list(&*storage, request_at("/r/", last), &[("/r/a", "2"), ("/r/b", "1")]).await;
}

/// A store whose keys were all deleted and compacted continues from its revision after a restart.
pub async fn reopen_of_an_emptied_store_goes_on(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let mut last = current(&*storage).await;
    for name in ["/r/a", "/r/b", "/r/c"] {
        let created = put(&*storage, name, "1").await;
        last = remove(&*storage, name, created).await;
    }
    storage.compact(last).await.expect("compact");
    let storage = reopen(factory, storage).await;
    let storage = reopen(factory, storage).await;
    assert_eq!(current(&*storage).await, last);
    let empty = expect_list(&*storage, request(""), &[]).await;
    assert_eq!(empty.revision, last);
    assert_compacted(storage.get_list(request_at("/r/", Revision(last.0 - 1))).await, last, "list");
    let mut stream = watch(&*storage, "/r/", last).await;
    let created = put(&*storage, "/r/a", "2").await;
    assert_eq!(created.0, last.0 + 1);
    assert_eq!(next_writes(&mut stream, 1).await, [event(EventKind::Create, "/r/a", "2", created)]);
}
