//! Tests of reads of a resource whose watch cache is off.

use crate::{
    CacherConfig, CacherError, Freshness, ReadSource, WatchOptions, WatchStart,
    testing::{TestStorage, config, contents, settled, start},
};
use pintle_storage::{Key, Revision, Storage, StorageError};

fn config_of(read_source: ReadSource) -> CacherConfig {
    CacherConfig { read_source, page_size: 2, ..config() }
}

const UNCACHED: [ReadSource; 2] = [ReadSource::NewestOfCache, ReadSource::Storage];

#[tokio::test(start_paused = true)]
async fn every_read_sees_the_newest_state() {
    for read_source in UNCACHED {
        let storage = TestStorage::new();
        let cacher = start(&storage, config_of(read_source)).await;
        assert!(!cacher.is_read_cached());
        for round in 0..20 {
            let revision = storage.put("/p/a/x", &format!("v={round}")).await;
            for freshness in
                [Freshness::Any, Freshness::NotOlderThan(Revision(1)), Freshness::NotOlderThan(revision)]
            {
                let (object, read) = cacher.get(&Key::new("/p/a/x"), freshness).await.unwrap();
                assert_eq!((object.unwrap().revision(), read), (revision, revision), "{freshness:?}");
                let snapshot = cacher.list("/p/a/", freshness).await.unwrap();
                assert_eq!(contents(&snapshot), [format!("/p/a/x v={round}@{revision}")]);
                assert_eq!(snapshot.revision(), revision);
            }
            let other = storage.put("/q/a/x", "").await;
            let (object, read) = cacher.get(&Key::new("/p/a/none"), Freshness::Any).await.unwrap();
            assert_eq!((object.is_none(), read), (true, other));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_is_behind_does_not_hold_up_reads_of_the_store() {
    let storage = TestStorage::new();
    let cacher = start(&storage, config_of(ReadSource::Storage)).await;
    storage.control(|controls| controls.held = true);
    storage.put("/p/a/x", "").await;
    storage.put("/p/b/y", "").await;
    let began = tokio::time::Instant::now();
    assert_eq!(contents(&cacher.list("/p/", Freshness::Any).await.unwrap()), ["/p/a/x @2", "/p/b/y @3"]);
    assert_eq!(contents(&cacher.list("/p/b/", Freshness::Any).await.unwrap()), ["/p/b/y @3"]);
    assert!(cacher.get(&Key::new("/p/a/x"), Freshness::Consistent).await.unwrap().0.is_some());
    assert_eq!(began.elapsed(), std::time::Duration::ZERO);
    cacher.stop();
    assert_eq!(cacher.list("/p/", Freshness::Any).await.unwrap_err(), CacherError::Stopped);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_the_future() {
    for read_source in UNCACHED {
        let storage = TestStorage::new();
        let cacher = start(&storage, config_of(read_source)).await;
        let (requested, current) = (Revision(9), storage.put("/p/a/x", "").await);
        let refused = CacherError::Storage(StorageError::FutureRevision { requested, current });
        let began = tokio::time::Instant::now();
        let freshness = Freshness::NotOlderThan(requested);
        assert_eq!(cacher.list("/p/", freshness).await.unwrap_err(), refused);
        assert_eq!(cacher.get(&Key::new("/p/a/x"), freshness).await.unwrap_err(), refused);
        assert_eq!(cacher.list_at("/p/", requested).await.unwrap_err(), refused);
        assert_eq!(began.elapsed(), std::time::Duration::ZERO, "{read_source:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn past_states_are_exact_until_they_are_compacted() {
    for read_source in UNCACHED {
        let storage = TestStorage::new();
        // A log of one event has almost no history.
        let config = CacherConfig { log_capacity_min: 1, log_capacity_max: 1, ..config_of(read_source) };
        let cacher = start(&storage, config).await;
        for name in ["a", "b", "c", "d", "e"] {
            storage.put(&format!("/p/n/{name}"), "").await;
        }
        storage.remove("/p/n/a").await;
        let at =
            async |revision| cacher.list_at("/p/n/", Revision(revision)).await.map(|past| contents(&past));
        assert_eq!(at(4).await.unwrap(), ["/p/n/a @2", "/p/n/b @3", "/p/n/c @4"]);
        assert_eq!(at(7).await.unwrap().len(), 4);
        storage.compact(Revision(5)).await.unwrap();
        let (requested, oldest) = (Revision(4), Revision(5));
        assert_eq!(at(4).await, Err(CacherError::Expired { requested, oldest }));
        assert_eq!(at(5).await.unwrap().len(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn watches_begin_with_the_newest_state_and_miss_nothing() {
    for read_source in UNCACHED {
        let storage = TestStorage::new();
        storage.control(|controls| controls.silent = true);
        let cacher = start(&storage, config_of(read_source)).await;
        let first = storage.put("/p/a/x", "").await;
        for start in [WatchStart::State, WatchStart::InitialEvents(Freshness::Any)] {
            let mut watcher = cacher.watch(WatchOptions::new(start)).await.unwrap();
            assert_eq!(settled(&cacher, &mut watcher).await, ["ADDED /p/a/x @2"], "{start:?}");
        }
        let mut now = cacher.watch(WatchOptions::new(WatchStart::Now(Freshness::Any))).await.unwrap();
        let mut after = cacher.watch(WatchOptions::new(WatchStart::After(first))).await.unwrap();
        storage.put("/p/a/x", "v=2").await;
        storage.remove("/p/a/x").await;
        for watcher in [&mut now, &mut after] {
            assert_eq!(settled(&cacher, watcher).await, ["MODIFIED /p/a/x v=2@3", "DELETED /p/a/x v=2@4"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_before_a_compaction_is_too_old_though_the_log_has_it() {
    for (read_source, expired) in
        [(ReadSource::Cache, false), (ReadSource::NewestOfCache, true), (ReadSource::Storage, true)]
    {
        let storage = TestStorage::new();
        let cacher = start(&storage, config_of(read_source)).await;
        let first = storage.put("/p/a/x", "").await;
        let compacted = storage.put("/p/a/y", "").await;
        cacher.snapshot(Freshness::Consistent).await.unwrap();
        storage.compact(compacted).await.unwrap();
        let watch = cacher.watch(WatchOptions::new(WatchStart::After(first))).await;
        assert_eq!(watch.is_err(), expired, "{read_source:?}");
        assert!(cacher.watch(WatchOptions::new(WatchStart::After(compacted))).await.is_ok());
    }
}
