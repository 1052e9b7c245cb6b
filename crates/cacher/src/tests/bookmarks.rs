//! Tests of the times and revisions of bookmarks.

use crate::{
    CacherConfig, Freshness, WatchItem, WatchOptions, WatchStart,
    testing::{TestStorage, config, ready, start},
};
use pintle_storage::Revision;
use std::time::Duration;
use tokio::time::{Instant, advance, timeout};

fn options(deadline: Option<u64>) -> WatchOptions {
    WatchOptions {
        bookmarks: true,
        deadline: deadline.map(|seconds| Instant::now() + Duration::from_secs(seconds)),
        ..WatchOptions::new(WatchStart::Now(Freshness::Any))
    }
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_comes_about_every_minute_and_shortly_before_the_deadline() {
    // (deadline, when bookmarks come, within a second)
    let rows: &[(Option<u64>, &[u64])] = &[
        (None, &[60, 120, 180, 240]),
        (Some(150), &[60, 120, 148]),
        (Some(60), &[58]),
        (Some(3), &[1]),
        (Some(2), &[]),
        (Some(1), &[]),
    ];
    for (deadline, expected) in rows {
        let storage = TestStorage::new();
        let cacher = start(&storage, config()).await;
        let mut watcher = cacher.watch(options(*deadline)).await.unwrap();
        let began = Instant::now();
        let mut seen = Vec::new();
        while let Ok(item) =
            timeout(Duration::from_secs(250).saturating_sub(began.elapsed()), watcher.next()).await
        {
            assert!(matches!(item, Some(WatchItem::Bookmark { initial_events_end: false, .. })));
            seen.push(began.elapsed().as_secs_f64());
        }
        assert_eq!(seen.len(), expected.len(), "deadline {deadline:?}: {seen:?}");
        let mut late = 0.0;
        for (seen, expected) in seen.iter().zip(*expected) {
            // The next period begins at the bookmark.
            late += 1.0;
            let expected = *expected as f64;
            assert!(
                *seen >= expected && *seen <= expected + late,
                "deadline {deadline:?}: {seen} for {expected}"
            );
            assert!(deadline.is_none_or(|deadline| *seen < deadline as f64));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_knows_the_stores_revision_though_the_resource_is_quiet() {
    for silent in [false, true] {
        let storage = TestStorage::new();
        storage.control(|controls| controls.silent = silent);
        let cacher = start(&storage, config()).await;
        let mut with = cacher.watch(options(None)).await.unwrap();
        let mut without = cacher.watch(WatchOptions { bookmarks: false, ..options(None) }).await.unwrap();
        assert_eq!((ready(&mut with), ready(&mut without)), (vec![], vec![]));
        for _ in 0..5 {
            storage.put("/q/another-resource", "").await;
        }
        let item = with.next().await;
        let bookmark = matches!(item, Some(WatchItem::Bookmark { revision: Revision(6), .. }));
        assert!(bookmark, "silent {silent}: {item:?}");
        assert_eq!(ready(&mut without), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_comes_after_the_events_it_covers() {
    let storage = TestStorage::new();
    let cacher = start(&storage, config()).await;
    let mut watcher = cacher.watch(options(None)).await.unwrap();
    assert_eq!(ready(&mut watcher), [""; 0]);
    storage.put("/p/a/x", "").await;
    // With no reader, a second bookmark replaces the first.
    for _ in 0..130 {
        advance(Duration::from_secs(1)).await;
        tokio::task::yield_now().await;
    }
    storage.put("/p/a/y", "").await;
    cacher.snapshot(Freshness::Consistent).await.unwrap();
    assert_eq!(ready(&mut watcher), ["ADDED /p/a/x @2", "BOOKMARK 2", "ADDED /p/a/y @3"]);
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_of_the_store_a_bookmark_says_what_is_known() {
    let storage = TestStorage::new();
    let cacher = start(&storage, config()).await;
    let mut watcher = cacher.watch(options(None)).await.unwrap();
    storage.control(|controls| {
        controls.silent = true;
        controls.held = true;
        controls.breaks += 1;
    });
    storage.put("/p/a/x", "").await;
    let item = watcher.next().await;
    assert!(matches!(item, Some(WatchItem::Bookmark { revision: Revision(1), .. })), "{item:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_has_to_catch_up_gets_no_bookmark_before_it_has() {
    let storage = TestStorage::new();
    let cacher = start(&storage, CacherConfig { queue_capacity: 4, ..config() }).await;
    let mut watcher = cacher.watch(options(None)).await.unwrap();
    assert_eq!(ready(&mut watcher), [""; 0]);
    for _ in 0..10 {
        storage.put("/p/a/x", "").await;
    }
    cacher.snapshot(Freshness::Consistent).await.unwrap();
    let mut items = Vec::new();
    assert!(watcher.next_batch(2, &mut items).await);
    // The queue has room, but six events are in the event log alone.
    assert_eq!((items.len(), watcher.target().queued()), (2, 2));
    tokio::time::sleep(Duration::from_secs(70)).await;
    let seen = ready(&mut watcher);
    assert_eq!((seen.len(), seen[7].as_str()), (8, "MODIFIED /p/a/x @11"));
    tokio::time::sleep(Duration::from_secs(70)).await;
    assert_eq!(ready(&mut watcher), ["BOOKMARK 11"]);
}
