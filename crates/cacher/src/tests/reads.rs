//! Tests of the freshness of reads, and of past states.

use crate::{
    Cacher, CacherConfig, CacherError, Freshness, WatchOptions, WatchStart,
    testing::{TestStorage, config, contents, ready, start},
};
use pintle_storage::{Key, Revision, Storage};
use pintle_supervisor::Supervisor;
use std::{sync::atomic::Ordering, time::Duration};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_consistent_read_sees_every_acknowledged_write_at_once() {
    for silent in [false, true] {
        let storage = TestStorage::new();
        storage.control(|controls| controls.silent = silent);
        let cacher = start(&storage, config()).await;
        for round in 0..20 {
            let text = format!("v={round}");
            let revision = storage.put("/p/a/x", &text).await;
            let (object, read) = cacher.get(&Key::new("/p/a/x"), Freshness::Consistent).await.unwrap();
            assert_eq!(object.unwrap().json(), &format!("{text}@{revision}"));
            assert_eq!(read, revision);
            // A write to another resource also advances the revision of the list.
            let revision = storage.put("/q/a/x", "").await;
            let snapshot = cacher.snapshot(Freshness::Consistent).await.unwrap();
            assert_eq!(snapshot.revision(), revision, "silent {silent}");
            let snapshot = cacher.snapshot(Freshness::NotOlderThan(revision)).await.unwrap();
            assert!(snapshot.revision() >= revision);
        }
        let metrics = cacher.metrics();
        assert_eq!(metrics.consistent_reads.load(Ordering::Relaxed), 40);
        assert_eq!(metrics.consistent_reads_fallback.load(Ordering::Relaxed), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_waits_for_its_revision_but_not_for_ever() {
    // (write after, answer)
    let rows = [(1000, true), (2800, true), (3100, false)];
    for silent in [false, true] {
        for (milliseconds, answered) in rows {
            let storage = TestStorage::new();
            storage.control(|controls| controls.silent = silent);
            let cacher = start(&storage, config()).await;
            let writer = storage.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                writer.put("/q/a/x", "").await;
            });
            let began = Instant::now();
            let answer = cacher.snapshot(Freshness::NotOlderThan(Revision(2))).await;
            if answered {
                assert_eq!(answer.unwrap().revision(), Revision(2));
            } else {
                let (requested, current) = (Revision(2), Revision(1));
                let error = CacherError::TooLargeResourceVersion { requested, current };
                assert_eq!(answer.unwrap_err(), error);
                assert_eq!(error.to_string(), "Too large resource version: 2, current: 1");
                assert_eq!(began.elapsed(), Duration::from_secs(3));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_consistent_read_that_the_cache_cannot_serve_is_read_from_the_store() {
    let storage = TestStorage::new();
    let cacher = start(&storage, config()).await;
    storage.control(|controls| controls.held = true);
    storage.put("/p/a/x", "").await;
    let stale = cacher.snapshot(Freshness::Any).await.unwrap();
    assert_eq!((contents(&stale).len(), stale.revision()), (0, Revision(1)));
    let fresh = cacher.snapshot(Freshness::Consistent).await.unwrap();
    assert_eq!((contents(&fresh), fresh.revision()), (vec!["/p/a/x @2".to_owned()], Revision(2)));
    assert_eq!(cacher.metrics().consistent_reads_fallback.load(Ordering::Relaxed), 1);
    // The cache itself continues from its own revision.
    storage.control(|controls| controls.held = false);
    let fresh = cacher.snapshot(Freshness::Consistent).await.unwrap();
    assert_eq!(contents(&fresh), ["/p/a/x @2"]);
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_is_not_taken_for_a_quiet_one() {
    let storage = TestStorage::new();
    let cacher = start(&storage, config()).await;
    storage.control(|controls| {
        controls.breaks += 1;
        controls.no_watches = true;
    });
    tokio::time::sleep(Duration::from_millis(1)).await;
    storage.put("/p/a/x", "").await;
    let fresh = cacher.snapshot(Freshness::Consistent).await.unwrap();
    assert_eq!(contents(&fresh), ["/p/a/x @2"]);
    assert_eq!(cacher.metrics().consistent_reads_fallback.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn every_past_state_is_exact() {
    for log_capacity in [4, 1000] {
        let storage = TestStorage::new();
        // States older than the log come from the store, in pages.
        let config = CacherConfig {
            log_capacity_min: log_capacity,
            log_capacity_max: log_capacity,
            page_size: 2,
            ..config()
        };
        let cacher = start(&storage, config).await;
        let mut states = vec![(Revision(1), Vec::new())];
        for step in 0..60 {
            let key = format!("/p/a/{}", step * 7 % 5);
            let revision = match step % 4 {
                3 => storage.remove(&key).await.unwrap_or(Revision(0)),
                2 => storage.put("/q/a/x", "").await,
                _ => storage.put(&key, "").await,
            };
            let snapshot = cacher.snapshot(Freshness::Consistent).await.unwrap();
            if revision != Revision(0) {
                assert_eq!(snapshot.revision(), revision);
                states.push((revision, contents(&snapshot)));
            }
        }
        for (revision, expected) in &states {
            let snapshot = cacher.snapshot_at(*revision).await.unwrap();
            assert_eq!(snapshot.revision(), *revision);
            assert_eq!(contents(&snapshot), *expected, "at {revision}");
        }
        storage.compact(Revision(20)).await.unwrap();
        let expired = cacher.snapshot_at(Revision(10)).await;
        let (requested, oldest) = (Revision(10), Revision(20));
        assert_eq!(expired.unwrap_err(), CacherError::Expired { requested, oldest });
        assert_eq!(cacher.snapshot_at(oldest).await.unwrap().revision(), oldest);
        let future = cacher.snapshot_at(Revision(1000)).await;
        assert!(matches!(future, Err(CacherError::TooLargeResourceVersion { .. })));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_first_list_has_every_object_whatever_its_pages() {
    let storage = TestStorage::new();
    let name = |number: usize| format!("/p/a/{number:03}");
    let is_bad = |number: usize| number % 50 == 7;
    for number in 0..330 {
        storage.put(&name(number), if is_bad(number) { "!" } else { "" }).await;
    }
    let all = |is_expected: &dyn Fn(usize) -> bool| {
        (0..330).filter(|number| is_expected(*number)).map(name).collect::<Vec<_>>()
    };
    // Pages that are decoded by tasks, the last of which is small; pages that are small; and one page.
    for page_size in [40, 7, 1000] {
        let cacher = start(&storage, CacherConfig { page_size, ..config() }).await;
        let snapshot = cacher.snapshot(Freshness::Any).await.unwrap();
        let found: Vec<_> = snapshot.range("", None).map(|object| object.key().to_string()).collect();
        assert_eq!(found, all(&|number| !is_bad(number)), "pages of {page_size}");
        let bad: Vec<_> = snapshot.unreadable_range("").map(|(key, _)| key.to_string()).collect();
        assert_eq!(bad, all(&is_bad), "pages of {page_size}");
        assert_eq!(cacher.metrics().storage_list_fetched.load(Ordering::Relaxed), 330);
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_decode_takes_no_other_away() {
    let storage = TestStorage::new();
    storage.put("/p/a/bad", "!").await;
    storage.put("/p/a/good", "").await;
    let cacher = start(&storage, config()).await;
    let read = async || contents(&cacher.snapshot(Freshness::Consistent).await.unwrap());
    assert_eq!(read().await, ["/p/a/good @3"]);
    storage.put("/p/a/good", "!").await;
    assert_eq!(read().await, [""; 0]);
    storage.put("/p/a/bad", "").await;
    storage.put("/p/a/other", "").await;
    assert_eq!(read().await, ["/p/a/bad @5", "/p/a/other @6"]);
    assert_eq!(cacher.metrics().decode_errors.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_object_is_told_of_until_it_is_readable_or_gone() {
    let storage = TestStorage::new();
    storage.put("/p/a/listed", "!").await;
    let cacher = start(&storage, config()).await;
    let mut watcher = cacher.watch(WatchOptions::new(WatchStart::After(Revision(2)))).await.unwrap();
    let unreadable = async || {
        let snapshot = cacher.snapshot(Freshness::Consistent).await.unwrap();
        let found = snapshot.unreadable_range("/p/a/").map(|(key, object)| {
            assert!(snapshot.get(key).is_none());
            assert_eq!(snapshot.unreadable(key).unwrap().revision, object.revision);
            format!("{key} @{}: {}", object.revision, object.error)
        });
        found.collect::<Vec<_>>()
    };
    assert_eq!(unreadable().await, ["/p/a/listed @2: not an object"]);
    storage.put("/p/a/watched", "").await;
    storage.put("/p/a/watched", "!").await;
    storage.put("/p/b/other", "!").await;
    assert_eq!(unreadable().await, ["/p/a/listed @2: not an object", "/p/a/watched @4: not an object"]);
    assert_eq!(ready(&mut watcher), ["ADDED /p/a/watched @3"]);
    storage.put("/p/a/watched", "!!").await;
    storage.put("/p/a/listed", "v=2").await;
    assert_eq!(unreadable().await, ["/p/a/watched @6: not an object"]);
    assert_eq!(ready(&mut watcher), ["ADDED /p/a/listed v=2@7"]);
    storage.put("/p/a/watched", "v=2").await;
    assert_eq!(unreadable().await, [""; 0]);
    assert_eq!(ready(&mut watcher), ["MODIFIED /p/a/watched v=2@8"]);
    storage.put("/p/a/watched", "!").await;
    storage.put("/p/a/new", "!").await;
    storage.remove("/p/a/watched").await.unwrap();
    assert_eq!(unreadable().await, ["/p/a/new @10: not an object"]);
    storage.remove("/p/a/new").await.unwrap();
    assert_eq!(unreadable().await, [""; 0]);
    assert_eq!(ready(&mut watcher), ["DELETED /p/a/watched v=2@11"]);
}

#[tokio::test(start_paused = true)]
async fn a_cacher_is_ready_once_it_has_listed() {
    let storage = TestStorage::new();
    storage.put("/p/a/x", "").await;
    storage.control(|controls| controls.no_lists = true);
    let cacher = Cacher::start(storage.clone(), config(), &Supervisor::current());
    for freshness in [Freshness::Any, Freshness::Consistent] {
        assert_eq!(cacher.snapshot(freshness).await.unwrap_err(), CacherError::NotReady);
    }
    assert!(!cacher.is_ready());
    storage.control(|controls| controls.no_lists = false);
    cacher.wait_ready().await.unwrap();
    assert!(cacher.is_ready());
    assert_eq!(contents(&cacher.snapshot(Freshness::Any).await.unwrap()), ["/p/a/x @2"]);
    cacher.stop();
    assert!(!cacher.is_ready());
    assert_eq!(cacher.wait_ready().await, Err(CacherError::Stopped));
    assert_eq!(cacher.snapshot(Freshness::Any).await.unwrap_err(), CacherError::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_panics_begins_anew_and_is_dead_until_then() {
    let storage = TestStorage::new();
    let supervisor = Supervisor::current();
    let cacher = Cacher::start(storage.clone(), config(), &supervisor);
    cacher.wait_ready().await.unwrap();
    storage.put("/p/a/x", "v=1").await;
    let mut watcher = cacher.watch(WatchOptions::new(WatchStart::State)).await.unwrap();
    storage.control(|controls| controls.panics = true);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(supervisor.dead().len(), 1);
    assert!(supervisor.dead()[0].starts_with("watch-cache/"), "{:?}", supervisor.dead());
    storage.control(|controls| controls.panics = false);
    let revision = storage.put("/p/a/y", "v=2").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let snapshot = cacher.snapshot(Freshness::Consistent).await.unwrap();
    assert_eq!(snapshot.revision(), revision);
    assert_eq!(contents(&snapshot), ["/p/a/x v=1@2", "/p/a/y v=2@3"]);
    assert_eq!(ready(&mut watcher).last().map(String::as_str), Some("END"));
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert!(supervisor.dead().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_is_behind_reads_from_the_store_what_is_asked_for_and_no_more() {
    let storage = TestStorage::new();
    let cacher = start(&storage, config()).await;
    storage.control(|controls| controls.held = true);
    storage.put("/p/a/x", "v=1").await;
    let newest = storage.put("/p/b/y", "v=2").await;
    storage.take_listed();
    let (object, revision) = cacher.get(&Key::new("/p/a/x"), Freshness::Consistent).await.unwrap();
    assert!(object.is_some());
    assert_eq!((revision, storage.take_listed()), (newest, vec![]));
    let list = cacher.list("/p/b/", Freshness::Consistent).await.unwrap();
    assert_eq!(contents(&list), ["/p/b/y v=2@3"]);
    assert_eq!(storage.take_listed(), ["/p/b/"]);
}

#[tokio::test(start_paused = true)]
async fn a_past_state_of_a_prefix_is_read_from_the_store_without_the_others() {
    let storage = TestStorage::new();
    let past = storage.put("/p/a/x", "v=1").await;
    storage.put("/p/b/y", "v=1").await;
    storage.put("/p/a/x", "v=2").await;
    let cacher = start(&storage, config()).await;
    storage.take_listed();
    let list = cacher.list_at("/p/a/", past).await.unwrap();
    assert_eq!(contents(&list), ["/p/a/x v=1@2"]);
    assert_eq!(storage.take_listed(), ["/p/a/"]);
}
