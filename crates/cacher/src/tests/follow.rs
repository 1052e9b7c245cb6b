//! Tests of the reflector with storage watches that end.

use crate::{
    CacherConfig, CacherError, DecodeError, DecodedObject, Freshness, ObjectDecoder, WatchOptions,
    WatchStart,
    testing::{TestStorage, config, contents, ready, settled, start},
};
use bytes::Bytes;
use pintle_storage::{Key, Payload, Revision, Storage};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

#[tokio::test(start_paused = true)]
async fn watchers_notice_nothing_of_a_storage_watch_that_ends() {
    let storage = TestStorage::new();
    let cacher = start(&storage, config()).await;
    let mut watcher = cacher.watch(WatchOptions::new(WatchStart::Now(Freshness::Any))).await.unwrap();
    let mut expected = Vec::new();
    for round in 0..10 {
        let revision = storage.put(&format!("/p/a/{round}"), "").await;
        expected.push(format!("ADDED /p/a/{round} @{revision}"));
        if round % 3 == 0 {
            storage.control(|controls| controls.breaks += 1);
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(settled(&cacher, &mut watcher).await, expected);
    assert_eq!(cacher.metrics().initializations.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_gap_in_the_stores_history_ends_the_watches_and_lists_anew() {
    let storage = TestStorage::new();
    storage.put("/p/a/gone", "").await;
    let cacher = start(&storage, config()).await;
    let mut watcher = cacher.watch(WatchOptions::new(WatchStart::After(Revision(2)))).await.unwrap();
    assert_eq!(ready(&mut watcher), [""; 0]);
    storage.control(|controls| {
        controls.breaks += 1;
        controls.no_watches = true;
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    storage.put("/p/a/x", "").await;
    storage.remove("/p/a/gone").await;
    storage.compact(Revision(4)).await.unwrap();
    storage.control(|controls| controls.no_watches = false);
    let snapshot = loop {
        let snapshot = cacher.snapshot(Freshness::Any).await.unwrap();
        if snapshot.revision() > Revision(2) {
            break snapshot;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert_eq!((contents(&snapshot), snapshot.revision()), (vec!["/p/a/x @3".to_owned()], Revision(4)));
    assert_eq!(cacher.metrics().initializations.load(Ordering::Relaxed), 2);
    assert_eq!(ready(&mut watcher), ["END"]);
    // The client resumes from its last revision.
    let expired = cacher.watch(WatchOptions::new(WatchStart::After(Revision(2)))).await.err().unwrap();
    assert_eq!(expired, CacherError::Expired { requested: Revision(2), oldest: Revision(4) });
    assert_eq!(expired.to_string(), "too old resource version: 2 (4)");
    let mut watcher = cacher.watch(WatchOptions::new(WatchStart::After(Revision(4)))).await.unwrap();
    storage.put("/p/a/y", "").await;
    assert_eq!(settled(&cacher, &mut watcher).await, ["ADDED /p/a/y @5"]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_closes_stops_the_cacher() {
    let storage = TestStorage::new();
    let cacher = start(&storage, config()).await;
    let mut watcher = cacher.watch(WatchOptions::new(WatchStart::Now(Freshness::Any))).await.unwrap();
    storage.put("/p/a/x", "").await;
    storage.close().await.unwrap();
    assert!(watcher.next().await.is_some());
    assert!(watcher.next().await.is_none());
    assert_eq!(cacher.snapshot(Freshness::Any).await.unwrap_err(), CacherError::Stopped);
    let again = cacher.watch(WatchOptions::new(WatchStart::After(Revision(2)))).await.err();
    assert_eq!(again, Some(CacherError::Stopped));
}

/// The test decoder, which panics at some values.
struct PanicsAt {
    inner: Arc<dyn ObjectDecoder>,
    /// The values at which it panics yet.
    left: AtomicUsize,
}

impl PanicsAt {
    fn times(times: usize) -> Arc<PanicsAt> {
        Arc::new(PanicsAt { inner: config().decoder, left: AtomicUsize::new(times) })
    }
}

impl ObjectDecoder for PanicsAt {
    fn decode(&self, key: &Key, value: &Payload, revision: Revision) -> Result<DecodedObject, DecodeError> {
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        assert!(left.is_err(), "a bug");
        self.inner.decode(key, value, revision)
    }

    fn rewrite_revision(&self, json: &Bytes, revision: Revision) -> Bytes {
        self.inner.rewrite_revision(json, revision)
    }
}

#[tokio::test(start_paused = true)]
async fn a_cacher_whose_decoder_panics_answers_nothing_rather_than_goes_stale() {
    let storage = TestStorage::new();
    let decoder = PanicsAt::times(usize::MAX);
    let cacher = start(&storage, CacherConfig { decoder, ..config() }).await;
    storage.put("/p/a/x", "").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    for freshness in [Freshness::Any, Freshness::Consistent] {
        assert_eq!(cacher.snapshot(freshness).await.unwrap_err(), CacherError::NotReady);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cacher_whose_decoder_panics_once_is_filled_again() {
    let storage = TestStorage::new();
    storage.put("/p/a/x", "").await;
    let decoder = PanicsAt::times(0);
    let cacher = start(&storage, CacherConfig { decoder: decoder.clone(), ..config() }).await;
    let all = || WatchOptions::new(WatchStart::State);
    let mut watcher = cacher.watch(all()).await.unwrap();
    assert_eq!(settled(&cacher, &mut watcher).await, ["ADDED /p/a/x @2"]);
    decoder.left.store(1, Ordering::Relaxed);
    let reader = tokio::spawn({
        let cacher = cacher.clone();
        // Waits for a state that has the write at which the decoder panics.
        async move { cacher.snapshot(Freshness::NotOlderThan(Revision(3))).await }
    });
    storage.put("/p/a/y", "").await;
    assert_eq!(contents(&reader.await.unwrap().unwrap()), ["/p/a/x @2", "/p/a/y @3"]);
    assert_eq!(decoder.left.load(Ordering::Relaxed), 0, "it has panicked");
    assert_eq!(ready(&mut watcher), ["END"], "what a watcher knows is not the state any more");
    let mut watcher = cacher.watch(all()).await.unwrap();
    assert_eq!(settled(&cacher, &mut watcher).await, ["ADDED /p/a/x @2", "ADDED /p/a/y @3"]);
    storage.put("/p/a/z", "").await;
    assert_eq!(settled(&cacher, &mut watcher).await, ["ADDED /p/a/z @4"]);
}

#[tokio::test(start_paused = true)]
async fn watchers_that_are_behind_when_all_watches_end_share_what_is_left() {
    const WRITES: u64 = 600;
    let storage = TestStorage::new();
    let cacher = start(&storage, CacherConfig { queue_capacity: 4, ..config() }).await;
    let from = |revision| WatchOptions::new(WatchStart::After(Revision(revision)));
    let mut watchers = Vec::new();
    for _ in 0..20 {
        watchers.push(cacher.watch(from(1)).await.unwrap());
    }
    let mut expected = Vec::new();
    for index in 0..WRITES {
        let revision = storage.put(&format!("/p/a/{index}"), "").await;
        expected.push(format!("ADDED /p/a/{index} @{revision}"));
    }
    expected.push("END".to_owned());
    cacher.snapshot(Freshness::Consistent).await.unwrap();
    cacher.end_watches();
    // A watch that begins later ends after the same changes, also those that are written meanwhile.
    storage.put("/p/a/later", "").await;
    cacher.snapshot(Freshness::Consistent).await.unwrap();
    watchers.push(cacher.watch(from(1)).await.unwrap());
    for mut watcher in watchers {
        assert!(watcher.target().queued() <= 4, "nothing is copied for a watcher");
        assert_eq!(ready(&mut watcher), expected);
    }
    let mut last = cacher.watch(from(2 + WRITES)).await.unwrap();
    assert_eq!(ready(&mut last), ["END"]);
}
