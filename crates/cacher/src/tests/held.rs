//! Tests of readers that hold a state for long.

use crate::{
    ByteBudget, CacherConfig, Freshness, WatchOptions, WatchStart,
    testing::{TestStorage, config, start},
};
use std::sync::atomic::Ordering;

/// The size of each object, at least.
const BYTES: usize = 100_000;

/// A text that hardly becomes smaller when it is packed.
fn text() -> String {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'A' + (state >> 24) as u8 % 58)
    };
    (0..BYTES * 5 / 4).map(|_| next()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_takes_long_for_the_initial_state_loses_it() {
    let storage = TestStorage::new();
    let text = text();
    for name in 0..20 {
        storage.put(&format!("/p/a/{name:02}"), &text).await;
    }
    let budget = ByteBudget::new(6 * BYTES, 0);
    let cacher = start(&storage, CacherConfig { held_budget: budget.clone(), ..config() }).await;
    let mut watchers = Vec::new();
    for _ in 0..2 {
        let mut watcher = cacher.watch(WatchOptions::new(WatchStart::State)).await.unwrap();
        assert!(watcher.next().await.is_some());
        watchers.push(watcher);
    }
    for name in 0..4 {
        storage.put(&format!("/p/a/{name:02}"), &text).await;
    }
    cacher.snapshot(Freshness::Consistent).await.unwrap();
    assert!((4 * BYTES..6 * BYTES).contains(&budget.used()), "{}", budget.used());
    let [quick, slow] = &mut watchers[..] else { unreachable!() };
    // The rest of the state, and the changes since.
    for _ in 0..19 + 4 {
        assert!(quick.next().await.is_some());
    }
    for name in 4..10 {
        storage.put(&format!("/p/a/{name:02}"), &text).await;
    }
    cacher.snapshot(Freshness::Consistent).await.unwrap();
    assert_eq!(budget.used(), 0);
    assert!(slow.next().await.is_none(), "its events are not sent without the state before them");
    assert_eq!(cacher.metrics().terminated_watchers.load(Ordering::Relaxed), 1);
    assert!(slow.next().await.is_none());
    assert!(quick.next().await.is_some(), "one that has the state goes on");
}

#[tokio::test(start_paused = true)]
async fn what_a_past_state_has_beside_the_present_one_is_counted() {
    let storage = TestStorage::new();
    let text = text();
    storage.put("/p/a/x", &text).await;
    let before = storage.put("/p/a/y", &text).await;
    let budget = ByteBudget::unlimited();
    let cacher = start(&storage, CacherConfig { held_budget: budget.clone(), ..config() }).await;
    let present = cacher.snapshot(Freshness::Consistent).await.unwrap();
    let held = cacher.hold(&present, usize::MAX, ());
    assert_eq!(budget.used(), 0);
    drop(held);
    storage.put("/p/a/x", &text).await;
    cacher.snapshot(Freshness::Consistent).await.unwrap();
    let past = cacher.snapshot_at(before).await.unwrap();
    for most in [usize::MAX, 1000] {
        let held = cacher.hold(&past, most, ());
        assert!((most.min(BYTES)..2 * BYTES).contains(&budget.used()), "{}", budget.used());
        drop(held);
        assert_eq!(budget.used(), 0);
    }
    // Of states before the log, the most is assumed.
    for _ in 0..2000 {
        storage.put("/p/a/y", "").await;
    }
    cacher.snapshot(Freshness::Consistent).await.unwrap();
    let _held = cacher.hold(&past, usize::MAX, ());
    assert!(budget.used() > 16 << 20);
}
