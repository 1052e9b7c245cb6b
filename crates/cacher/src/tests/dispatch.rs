//! Tests of the dispatcher: woken watchers, queues, and slow watchers.

use crate::{
    ByteBudget, Cacher, CacherConfig, Freshness, Snapshot, WatchOptions, WatchStart, Watcher,
    event::Change,
    testing::{TestStorage, config, on_node, ready, settled, start},
};
use pintle_storage::Revision;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

async fn watch(cacher: &Cacher, options: WatchOptions) -> Watcher {
    let mut watcher = cacher.watch(options).await.unwrap();
    assert_eq!(ready(&mut watcher), [""; 0]);
    watcher
}

fn now() -> WatchOptions {
    WatchOptions::new(WatchStart::Now(Freshness::Any))
}

#[tokio::test(start_paused = true)]
async fn an_event_wakes_only_those_who_want_it() {
    let storage = TestStorage::new();
    let cacher = start(&storage, config()).await;
    let mut watchers = Vec::new();
    for node in 0..100 {
        for _ in 0..5 {
            watchers.push(watch(&cacher, on_node(&format!("n{node}"))).await);
        }
    }
    let wake_ups = || cacher.metrics().wake_ups.load(Ordering::Relaxed);
    // (write, watchers woken)
    let rows =
        [("node=n7", 5), ("node=n7;v=2", 5), ("node=n8", 10), ("node=elsewhere", 5), ("", 0), ("node=n1", 5)];
    for (text, expected) in rows {
        let before = wake_ups();
        storage.put("/p/a/x", text).await;
        cacher.snapshot(Freshness::Consistent).await.unwrap();
        assert_eq!(wake_ups() - before, expected, "{text}");
        for watcher in &mut watchers {
            ready(watcher);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_wakes_a_watcher_once() {
    let storage = TestStorage::new();
    let cacher = start(&storage, config()).await;
    let mut watcher = watch(&cacher, now()).await;
    storage.control(|controls| controls.held = true);
    for _ in 0..100 {
        storage.put("/p/a/x", "").await;
    }
    storage.control(|controls| controls.held = false);
    assert_eq!(settled(&cacher, &mut watcher).await.len(), 100);
    assert_eq!(cacher.metrics().wake_ups.load(Ordering::Relaxed), 1);
}

fn small() -> CacherConfig {
    CacherConfig { queue_capacity: 10, log_capacity_min: 50, log_capacity_max: 100, ..config() }
}

async fn burst(storage: &TestStorage, cacher: &Cacher, count: usize) {
    for _ in 0..count {
        storage.put("/p/a/x", "").await;
        cacher.snapshot(Freshness::Consistent).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_falls_behind_its_queue_catches_up_from_the_log() {
    let storage = TestStorage::new();
    let cacher = start(&storage, small()).await;
    let mut slow = watch(&cacher, now()).await;
    let mut other = watch(&cacher, on_node("another")).await;
    for round in 0..3 {
        burst(&storage, &cacher, 90).await;
        assert_eq!(slow.target().queued(), 10);
        assert_eq!(other.target().queued(), 0);
        let seen = ready(&mut slow);
        let first = 2 + round * 90;
        let expected: Vec<_> = (first..first + 90)
            .map(|revision| {
                let event_type = if revision == 2 { "ADDED" } else { "MODIFIED" };
                format!("{event_type} /p/a/x @{revision}")
            })
            .collect();
        assert_eq!(seen, expected);
        assert_eq!(slow.target().queued(), 0);
    }
    assert_eq!(ready(&mut other), [""; 0]);
    assert_eq!(cacher.metrics().terminated_watchers.load(Ordering::Relaxed), 0);
}

/// Only the watcher that has the long selector evaluates it, a few objects at a time, and not on a shared task.
#[tokio::test(start_paused = true)]
async fn a_slow_predicate_is_asked_by_its_watcher_alone() {
    let storage = TestStorage::new();
    for name in 0..1000 {
        storage.put(&format!("/p/a/{name:04}"), "").await;
    }
    let cacher = start(&storage, config()).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let options = WatchOptions {
        predicate: Some(Arc::new(move |_| counter.fetch_add(1, Ordering::Relaxed) == usize::MAX)),
        has_slow_predicate: true,
        ..WatchOptions::new(WatchStart::State)
    };
    let mut watcher = cacher.watch(options).await.unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    let mut items = Vec::new();
    let mut polls = |asked_before: usize| {
        let mut context = Context::from_waker(Waker::noop());
        let mut asked_last = asked_before;
        // The watch is pending for ever once it has seen everything.
        for polls in 0.. {
            assert!(watcher.poll_batch(&mut context, 256, &mut items).is_pending() && items.is_empty());
            let now = asked.load(Ordering::Relaxed);
            // A changed object is evaluated in its new and its old state.
            assert!(now - asked_last <= 2 * 64, "{}", now - asked_last);
            if now == asked_last {
                return (polls, now);
            }
            asked_last = now;
        }
        unreachable!()
    };
    let (count, before) = polls(0);
    assert_eq!((count, before), (16, 1000));
    for _ in 0..500 {
        storage.put("/p/a/0001", "").await;
        cacher.snapshot(Freshness::Consistent).await.unwrap();
    }
    assert_eq!(asked.load(Ordering::Relaxed), before, "a write asks no slow predicate");
    let (count, after) = polls(before);
    assert_eq!((count, after), (8, before + 1000));
}

/// A watcher's queue is bounded in bytes, too: the remaining events are in the event log, shared by all watchers.
#[tokio::test(start_paused = true)]
async fn large_objects_wait_in_the_log_and_come_few_at_a_time() {
    const SIZE: usize = 200_000;
    let storage = TestStorage::new();
    let cacher = start(&storage, config()).await;
    let large = "x".repeat(SIZE);
    for name in 0..10 {
        storage.put(&format!("/p/a/{name}"), &large).await;
    }
    cacher.snapshot(Freshness::Consistent).await.unwrap();
    let mut watcher = cacher.watch(WatchOptions::new(WatchStart::State)).await.unwrap();
    let mut items = Vec::new();
    for _ in 0..10 {
        assert!(watcher.next_batch(256, &mut items).await);
        assert_eq!(std::mem::take(&mut items).len(), 1);
    }
    // The watcher has read everything, so later events are queued.
    assert_eq!(ready(&mut watcher), [""; 0]);
    for _ in 0..30 {
        storage.put("/p/a/0", &large).await;
        cacher.snapshot(Freshness::Consistent).await.unwrap();
    }
    // Each event also keeps the object's previous state.
    assert_eq!(watcher.target().queued(), (4 << 20) / (2 * SIZE));
    let mut seen = 0;
    while seen < 30 {
        assert!(watcher.next_batch(256, &mut items).await);
        assert_eq!(items.len(), 1);
        seen += std::mem::take(&mut items).len();
    }
    assert_eq!(ready(&mut watcher), [""; 0]);
    // An event larger than all bounds is still delivered.
    storage.put("/p/a/0", &"x".repeat(5 << 20)).await;
    cacher.snapshot(Freshness::Consistent).await.unwrap();
    assert_eq!(ready(&mut watcher).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn watchers_that_do_not_read_share_the_memory_of_their_queues() {
    const SIZE: usize = 10_000;
    const WATCHERS: usize = 20;
    let storage = TestStorage::new();
    let budget = ByteBudget::new(10 * SIZE, SIZE);
    let cacher = start(&storage, CacherConfig { queue_budget: budget.clone(), ..config() }).await;
    let mut watchers = Vec::new();
    for _ in 0..WATCHERS {
        let mut watcher = cacher.watch(WatchOptions::new(WatchStart::State)).await.unwrap();
        assert_eq!(ready(&mut watcher), [""; 0]);
        watchers.push(watcher);
    }
    let large = "x".repeat(SIZE);
    for name in 0..20 {
        storage.put(&format!("/p/a/{name}"), &large).await;
    }
    cacher.snapshot(Freshness::Consistent).await.unwrap();
    // Each has its share, and one event beyond it.
    assert!(budget.used() <= (2 * WATCHERS + 10) * (SIZE + 10), "{}", budget.used());
    // The others are in the log.
    for watcher in &mut watchers {
        assert_eq!(ready(watcher).len(), 20);
    }
    assert_eq!(budget.used(), 0);
    drop(watchers);
    assert_eq!(budget.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_falls_behind_the_log_is_cut_off_alone() {
    let storage = TestStorage::new();
    let cacher = start(&storage, small()).await;
    let mut slow = watch(&cacher, now()).await;
    let mut quick = watch(&cacher, now()).await;
    let mut seen = 0;
    for _ in 0..10 {
        burst(&storage, &cacher, 20).await;
        seen += ready(&mut quick).len();
    }
    assert_eq!(seen, 200);
    assert_eq!(slow.target().queued(), 10);
    let seen = ready(&mut slow);
    // The queued events are delivered; then the client resumes from its last revision.
    assert_eq!(seen.len(), 11);
    assert_eq!((seen[9].as_str(), seen[10].as_str()), ("MODIFIED /p/a/x @11", "END"));
    assert_eq!(cacher.metrics().terminated_watchers.load(Ordering::Relaxed), 1);
    burst(&storage, &cacher, 1).await;
    assert_eq!(ready(&mut quick), ["MODIFIED /p/a/x @202"]);
    assert_eq!(ready(&mut slow), ["END"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_queued_while_the_initial_state_is_read() {
    let storage = TestStorage::new();
    for name in 0..20 {
        storage.put(&format!("/p/a/{name:02}"), "").await;
    }
    let cacher = start(&storage, small()).await;
    let mut watcher = cacher.watch(WatchOptions::new(WatchStart::State)).await.unwrap();
    let mut items = Vec::new();
    assert!(watcher.next_batch(5, &mut items).await);
    assert_eq!(items.len(), 5);
    storage.remove("/p/a/19").await;
    burst(&storage, &cacher, 30).await;
    assert_eq!(watcher.target().queued(), 0);
    let seen = ready(&mut watcher);
    assert_eq!(seen.len(), 15 + 1 + 30);
    assert_eq!(seen[14], "ADDED /p/a/19 @21");
    assert_eq!(seen[15], "DELETED /p/a/19 @22");
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_is_gone_leaves_nothing_behind() {
    let storage = TestStorage::new();
    let cacher = start(&storage, config()).await;
    let watchers = [watch(&cacher, now()).await, watch(&cacher, on_node("n")).await];
    assert_eq!(cacher.metrics().watchers.load(Ordering::Relaxed), 2);
    let targets = watchers.each_ref().map(|watcher| Arc::downgrade(watcher.target()));
    drop(watchers);
    assert_eq!(cacher.metrics().watchers.load(Ordering::Relaxed), 0);
    assert!(targets.iter().all(|target| target.upgrade().is_none()));
    burst(&storage, &cacher, 1).await;
}

#[tokio::test(start_paused = true)]
async fn stop_ends_watches_after_what_is_queued() {
    let storage = TestStorage::new();
    let cacher = start(&storage, config()).await;
    let mut watcher = watch(&cacher, now()).await;
    burst(&storage, &cacher, 2).await;
    cacher.stop();
    assert_eq!(ready(&mut watcher), ["ADDED /p/a/x @2", "MODIFIED /p/a/x @3", "END"]);
    assert_eq!(watcher.next().await.map(|_| ()), None);
}

#[tokio::test(start_paused = true)]
async fn stop_ends_watches_that_are_behind_after_all_that_happened() {
    let storage = TestStorage::new();
    storage.put("/p/a/w", "").await;
    let cacher = start(&storage, small()).await;
    let mut beginning = cacher.watch(WatchOptions::new(WatchStart::State)).await.unwrap();
    let mut slow = watch(&cacher, now()).await;
    // More events than a queue holds.
    burst(&storage, &cacher, 15).await;
    cacher.stop();
    let mut changes = vec!["ADDED /p/a/x @3".to_owned()];
    changes.extend((4..18).map(|revision| format!("MODIFIED /p/a/x @{revision}")));
    changes.push("END".to_owned());
    assert_eq!(ready(&mut slow), changes);
    let seen = ready(&mut beginning);
    assert_eq!((&*seen[0], &seen[1..]), ("ADDED /p/a/w @2", &*changes));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_loses_nothing() {
    let storage = TestStorage::new();
    let cacher = start(&storage, config()).await;
    let mut watcher = cacher.watch(now()).await.unwrap();
    for revision in 2..20 {
        let waited = tokio::time::timeout(Duration::from_millis(1), watcher.next()).await;
        assert!(waited.is_err());
        storage.put("/p/a/x", "").await;
        let Some(crate::WatchItem::Event { event, .. }) = watcher.next().await else { panic!("an event") };
        assert_eq!(event.revision(), Revision(revision));
    }
}

#[tokio::test(start_paused = true)]
async fn the_history_of_a_burst_is_forgotten_when_it_is_over() {
    let storage = TestStorage::new();
    let cacher = start(&storage, CacherConfig { log_capacity_min: 10, ..config() }).await;
    burst(&storage, &cacher, 1000).await;
    let first = {
        let past = cacher.snapshot_at(Revision(2)).await.unwrap();
        Arc::downgrade(past.range("/p/", None).next().unwrap())
    };
    let capacity = || cacher.metrics().capacity.load(Ordering::Relaxed);
    assert!(first.upgrade().is_some() && capacity() >= 1000);
    tokio::time::sleep(Duration::from_secs(76)).await;
    assert!(first.upgrade().is_none());
    assert!(capacity() <= 16);
    // The store still has the history.
    let watcher = cacher.watch(WatchOptions::new(WatchStart::After(Revision(2)))).await;
    assert_eq!(ready(&mut watcher.unwrap()).len(), 999);
}

#[tokio::test(start_paused = true)]
async fn several_changes_of_one_revision_are_told_apart() {
    // etcd deletes all keys of a lease at one revision.
    let storage = TestStorage::new();
    for key in ["/p/a/x", "/p/a/y", "/p/a/z"] {
        storage.put(key, "").await;
    }
    let cacher = start(&storage, CacherConfig { queue_capacity: 1, ..config() }).await;
    let mut watcher = watch(&cacher, now()).await;
    let objects = cacher.snapshot(Freshness::Any).await.unwrap();
    let revision = Revision(9);
    let changes = objects
        .range("/p/", None)
        .map(|object| Change { revision, current: None, previous: Some(object.clone()) })
        .collect();
    cacher.shared.apply(changes, Snapshot::new(Default::default(), Default::default(), revision));
    let expected = ["DELETED /p/a/x @9", "DELETED /p/a/y @9", "DELETED /p/a/z @9"];
    assert_eq!(watcher.target().queued(), 1);
    assert_eq!(ready(&mut watcher), expected);
    let after = async |revision| {
        let start = WatchStart::After(Revision(revision));
        ready(&mut cacher.watch(WatchOptions::new(start)).await.unwrap())
    };
    assert_eq!(after(8).await, expected);
    assert_eq!(after(9).await, [""; 0]);
}
