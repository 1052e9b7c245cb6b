//! Tests of the reflector with storage watches that end.

use crate::{
    CacherConfig, CacherError, DecodeError, DecodedObject, Freshness, ObjectDecoder, WatchOptions,
    WatchStart,
    testing::{TestStorage, config, contents, ready, settled, start},
};
use bytes::Bytes;
use pintle_storage::{Key, Payload, Revision, Storage};
use std::{
    sync::{Arc, atomic::Ordering},
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

#[tokio::test(start_paused = true)]
async fn a_cacher_whose_decoder_panics_answers_nothing_rather_than_goes_stale() {
    struct Panics;
    impl ObjectDecoder for Panics {
        fn decode(&self, _: &Key, _: &Payload, _: Revision) -> Result<DecodedObject, DecodeError> {
            panic!("a bug")
        }

        fn rewrite_revision(&self, json: &Bytes, _: Revision) -> Bytes {
            json.clone()
        }
    }
    let storage = TestStorage::new();
    let cacher = start(&storage, CacherConfig { decoder: Arc::new(Panics), ..config() }).await;
    storage.put("/p/a/x", "").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    for freshness in [Freshness::Any, Freshness::Consistent] {
        assert_eq!(cacher.snapshot(freshness).await.unwrap_err(), CacherError::NotReady);
    }
}
