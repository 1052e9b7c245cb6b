//! The contract of watches: every event once, in order, from any revision that is kept.

use super::*;
use std::sync::atomic::Ordering;

/// Writes before and after the start of the watch arrive as one sequence.
pub async fn watch_replays_history_then_goes_live(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let start = current(&*storage).await;
    let first = put(&*storage, "/r/a", "1").await;
    let second = set(&*storage, "/r/a", "2", first).await;
    let third = remove(&*storage, "/r/a", second).await;
    let mut stream = watch(&*storage, "/r/", start).await;
    let fourth = put(&*storage, "/r/a", "3").await;
    let history = [
        event(EventKind::Create, "/r/a", "1", first),
        event(EventKind::Update, "/r/a", "2", second),
        event(EventKind::Delete, "/r/a", "2", third),
        event(EventKind::Create, "/r/a", "3", fourth),
    ];
    assert_eq!(next_writes(&mut stream, 4).await, history);
    let fifth = remove(&*storage, "/r/a", fourth).await;
    assert_eq!(next_writes(&mut stream, 1).await, [event(EventKind::Delete, "/r/a", "3", fifth)]);
}

/// `after` is exclusive, at every revision of the history.
pub async fn watch_starts_after_its_revision(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let start = current(&*storage).await;
    let mut last = start;
    for object in 0..10 {
        last = put(&*storage, &format!("/r/{object}"), "1").await;
    }
    for after in start.0..=last.0 {
        let mut stream = watch(&*storage, "/r/", Revision(after)).await;
        let writes = writes_until(&mut stream, &*storage, last).await;
        let revisions: Vec<u64> = writes.iter().map(|write| write.3.0).collect();
        assert_eq!(revisions, (after + 1..=last.0).collect::<Vec<_>>(), "after {after}");
    }
}

/// A watch may start after a future revision, as one that resumes on another member of a cluster does.
pub async fn watch_from_the_future_waits_for_it(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let now = put(&*storage, "/r/a", "1").await;
    let mut stream = watch(&*storage, "/r/", Revision(now.0 + 1)).await;
    put(&*storage, "/r/b", "1").await;
    let third = put(&*storage, "/r/c", "1").await;
    assert_eq!(next_writes(&mut stream, 1).await, [event(EventKind::Create, "/r/c", "1", third)]);
}

/// Events of neighbouring prefixes are not delivered, live or from history.
pub async fn watch_is_isolated_by_prefix(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let start = current(&*storage).await;
    let mut expected = Vec::new();
    let mut live = watch(&*storage, "/r/pods/", start).await;
    let mut last = start;
    for name in ["/r/pods", "/r/pods/a", "/r/podsets/a", "/r/pods0", "/r/pods/b/c", "/r/pod/s"] {
        last = put(&*storage, name, "1").await;
        if name.starts_with("/r/pods/") {
            expected.push(event(EventKind::Create, name, "1", last));
        }
    }
    assert_eq!(writes_until(&mut live, &*storage, last).await, expected, "live");
    let mut replay = watch(&*storage, "/r/pods/", start).await;
    assert_eq!(writes_until(&mut replay, &*storage, last).await, expected, "from history");
}

/// With many writers, no event is lost, duplicated or out of order.
pub async fn watch_sees_every_write_of_concurrent_writers_once(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let start = current(&*storage).await;
    let mut stream = watch(&*storage, "/r/", start).await;
    let last = write_concurrently(&storage, 8, 40).await;
    let writes = writes_until(&mut stream, &*storage, last).await;
    let revisions: Vec<u64> = writes.iter().map(|write| write.3.0).collect();
    assert_eq!(revisions, (start.0 + 1..=last.0).collect::<Vec<_>>());
}

/// A watch that starts between two writes gets history and live events without a gap.
pub async fn watch_started_among_writes_misses_none(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let start = current(&*storage).await;
    let writers = {
        let storage = Arc::clone(&storage);
        tokio::spawn(async move { write_concurrently(&storage, 4, 60).await })
    };
    let mut streams = Vec::new();
    for _ in 0..20 {
        streams.push(watch(&*storage, "/r/", start).await);
        let after = current(&*storage).await;
        streams.push(watch(&*storage, "/r/", after).await);
        tokio::task::yield_now().await;
    }
    let last = writers.await.expect("the writers");
    for stream in &mut streams {
        let writes = writes_until(stream, &*storage, last).await;
        let revisions: Vec<u64> = writes.iter().map(|write| write.3.0).collect();
        let first = revisions.first().copied().unwrap_or(last.0 + 1);
        assert_eq!(revisions, (first..=last.0).collect::<Vec<_>>());
    }
    let mut whole = watch(&*storage, "/r/", start).await;
    assert_eq!(writes_until(&mut whole, &*storage, last).await.len() as u64, last.0 - start.0);
}

/// Each of `writers` creates `objects` keys. Returns the last revision.
async fn write_concurrently(storage: &Arc<dyn Storage>, writers: usize, objects: usize) -> Revision {
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let storage = Arc::clone(storage);
            tokio::spawn(async move {
                for object in 0..objects {
                    put(&*storage, &format!("/r/{writer}/{object}"), "1").await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a writer panicked");
    }
    current(&**storage).await
}

/// A dropped call loses no event.
pub async fn watch_next_batch_is_cancel_safe(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let start = current(&*storage).await;
    let mut revisions = Vec::new();
    for object in 0..50 {
        put(&*storage, &format!("/r/{object}"), "1").await;
    }
    let mut stream = watch(&*storage, "/r/", start).await;
    for object in 50..100 {
        put(&*storage, &format!("/r/{object}"), "1").await;
        let patience = Duration::from_micros(object % 7 * 10);
        if let Ok(batch) = tokio::time::timeout(patience, stream.next_batch()).await {
            revisions.extend(batch.expect("open").into_iter().filter_map(seen).map(|write| write.3.0));
        }
    }
    let last = current(&*storage).await;
    revisions.extend(writes_until(&mut stream, &*storage, last).await.into_iter().map(|write| write.3.0));
    assert_eq!(revisions, (start.0 + 1..=last.0).collect::<Vec<_>>());
}

/// When a write returns, its event is ready in every watch, without a timer or another thread.
///
/// etcd does not guarantee this; an engine over a network need not pass it.
pub async fn watch_gets_events_before_the_writer_is_answered(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let start = current(&*storage).await;
    let mut stream = watch(&*storage, "/r/", start).await;
    for object in 0..20 {
        let name = format!("/r/{object}");
        let written = put(&*storage, &name, "1").await;
        let batch = tokio::time::timeout(Duration::ZERO, stream.next_batch()).await.expect("it is ready");
        let writes: Vec<_> = batch.expect("open").into_iter().filter_map(seen).collect();
        assert_eq!(writes, [event(EventKind::Create, &name, "1", written)]);
    }
}

/// If an engine reports the queued revision of a watch, every acknowledged write to the prefix is at or below it;
/// once the watch is closed, the value is "unknown".
pub async fn queued_revision_covers_every_acknowledged_write(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let first = put(&*storage, "/r/first", "1").await;
    let from_history = watch(&*storage, "/r/", Revision(first.0 - 1)).await;
    let live = watch(&*storage, "/r/", first).await;
    let watches = [from_history, live];
    let queued = || {
        let told = watches.iter().filter_map(|watch| watch.queued_revision());
        told.map(|queued| queued.load(Ordering::Acquire)).collect::<Vec<_>>()
    };
    assert!(queued().iter().all(|queued| *queued >= first.0));
    for object in 0..20 {
        let written = put(&*storage, &format!("/r/{object}"), "1").await;
        put(&*storage, &format!("/q/{object}"), "1").await;
        assert!(queued().iter().all(|queued| *queued >= written.0), "{:?} after {written}", queued());
    }
    storage.close().await.expect("the store closes");
    assert!(queued().iter().all(|queued| *queued == u64::MAX), "{:?} after the end", queued());
}

/// A progress event follows all events up to its revision.
pub async fn progress_comes_after_all_events(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let start = current(&*storage).await;
    let mut streams = [watch(&*storage, "/r/", start).await, watch(&*storage, "", start).await];
    for object in 0..10 {
        let written = put(&*storage, &format!("/r/{object}"), "1").await;
        for stream in &mut streams {
            assert_eq!(writes_until(stream, &*storage, written).await.len(), 1);
        }
    }
}

/// A watch without events still receives the store's progress.
pub async fn progress_reaches_watches_of_quiet_prefixes(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let start = current(&*storage).await;
    let mut quiet = watch(&*storage, "/quiet/", start).await;
    let mut old = put(&*storage, "/r/a", "0").await;
    for value in ["1", "2", "3"] {
        old = set(&*storage, "/r/a", value, old).await;
        assert_eq!(writes_until(&mut quiet, &*storage, old).await, []);
    }
}
