//! Tests of watches from before the event log, as after a restart.

use crate::{
    CacherConfig, CacherError, WatchOptions, WatchStart,
    testing::{TestStorage, config, labelled, ready, settled, start},
};
use pintle_storage::{Revision, Storage};

fn after(revision: u64) -> WatchOptions {
    WatchOptions::new(WatchStart::After(Revision(revision)))
}

#[tokio::test(start_paused = true)]
async fn a_watch_resumes_from_the_stores_history_as_if_there_had_been_no_restart() {
    // Also more keys than are read one by one.
    for keys in [5, 300] {
        let storage = TestStorage::new();
        let first = start(&storage, config()).await;
        for key in 0..keys {
            storage.put(&format!("/p/a/{key}"), if key % 2 == 0 { "l:app=web" } else { "" }).await;
        }
        for key in 0..keys {
            let key = format!("/p/a/{key}");
            storage.put(&key, "l:app=web;v=2").await;
            storage.put("/q/a/x", "").await;
            storage.put(&key, "").await;
        }
        for key in [1, 2] {
            storage.remove(&format!("/p/a/{key}")).await;
        }
        storage.put("/p/a/1", "l:app=web;v=3").await;
        let second = start(&storage, config()).await;
        for revision in [1 + keys + keys, 1 + keys, 2, 1] {
            for predicate in [None, labelled("app", "web")] {
                let options = WatchOptions { predicate, ..after(revision) };
                let mut expected = first.watch(options.clone()).await.unwrap();
                let mut actual = second.watch(options).await.unwrap();
                let expected = settled(&first, &mut expected).await;
                assert!(expected.len() > keys as usize / 2);
                assert_eq!(ready(&mut actual), expected, "{keys} keys, after {revision}");
            }
        }
        // Later events are live.
        let mut watcher = second.watch(after(1)).await.unwrap();
        let seen = ready(&mut watcher).len();
        storage.put("/p/a/1", "v=4").await;
        assert_eq!(settled(&second, &mut watcher).await.len(), 1);
        let mut again = second.watch(after(1)).await.unwrap();
        assert_eq!(ready(&mut again).len(), seen + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_store_has_forgotten_is_expired() {
    let storage = TestStorage::new();
    for _ in 0..10 {
        storage.put("/p/a/x", "").await;
    }
    storage.compact(Revision(5)).await.unwrap();
    let cacher = start(&storage, config()).await;
    let expired = cacher.watch(after(4)).await.err();
    assert_eq!(expired, Some(CacherError::Expired { requested: Revision(4), oldest: Revision(11) }));
    let mut watcher = cacher.watch(after(9)).await.unwrap();
    assert_eq!(ready(&mut watcher), ["MODIFIED /p/a/x @10", "MODIFIED /p/a/x @11"]);
}

#[tokio::test(start_paused = true)]
async fn more_history_than_the_log_holds_is_expired() {
    let storage = TestStorage::new();
    for _ in 0..30 {
        storage.put("/p/a/x", "").await;
    }
    let config = CacherConfig { log_capacity_min: 4, log_capacity_max: 16, ..config() };
    let cacher = start(&storage, config).await;
    assert!(matches!(cacher.watch(after(10)).await.err(), Some(CacherError::Expired { .. })));
    let mut watcher = cacher.watch(after(20)).await.unwrap();
    assert_eq!(ready(&mut watcher).len(), 11);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_begins_with_its_cacher_has_no_history() {
    let storage = TestStorage::new();
    for _ in 0..10 {
        storage.put("/q/a/x", "").await;
    }
    for resume_from_storage in [false, true] {
        let cacher = start(&storage, CacherConfig { resume_from_storage, ..config() }).await;
        let refused = cacher.watch(after(1)).await.err();
        let expired = CacherError::Expired { requested: Revision(1), oldest: Revision(11) };
        assert_eq!(refused, (!resume_from_storage).then_some(expired));
        assert!(cacher.watch(after(11)).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_history_of_large_writes_is_expired_before_all_of_it_is_read() {
    let storage = TestStorage::new();
    for round in 0..20 {
        storage.put("/p/a/x", &format!("v={round}{}", "x".repeat(1000))).await;
    }
    let cacher = start(&storage, CacherConfig { log_bytes_max: 10_000, ..config() }).await;
    storage.take_listed();
    assert!(matches!(cacher.watch(after(2)).await, Err(CacherError::Expired { .. })));
    // Replaced values are read only for writes that fit the log.
    assert_eq!(storage.take_listed(), Vec::<String>::new());
    // It is not read again.
    storage.control(|controls| controls.no_watches = true);
    for revision in [2, 1] {
        assert!(matches!(cacher.watch(after(revision)).await, Err(CacherError::Expired { .. })));
    }
    assert!(matches!(cacher.watch(after(3)).await, Err(CacherError::Storage(_))));
    storage.control(|controls| controls.no_watches = false);
    cacher.watch(after(15)).await.unwrap();
}
