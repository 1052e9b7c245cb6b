//! Tests of a watcher's start, scope and predicate.

use crate::{
    CacherError, EventType, Freshness, RepresentationId, Trigger, WatchItem, WatchOptions, WatchScope,
    WatchStart,
    testing::{TestStorage, config, labelled, on_node, ready, settled, start},
};
use bytes::Bytes;
use pintle_storage::{Key, Revision};
use std::{cell::Cell, sync::Arc};

#[tokio::test(start_paused = true)]
async fn a_change_is_what_it_is_to_those_who_see_only_what_matches() {
    const IN: &str = "l:app=web";
    const OUT: &str = "l:app=db";
    // (before, after, the event with the content it carries); the change is the second write
    let rows: &[(Option<&str>, Option<&str>, &[&str])] = &[
        (None, Some(IN), &["ADDED /p/a/x l:app=web@2"]),
        (None, Some(OUT), &[]),
        (Some(IN), Some("l:app=web;v=2"), &["MODIFIED /p/a/x l:app=web;v=2@3"]),
        (Some(OUT), Some(IN), &["ADDED /p/a/x l:app=web@3"]),
        // The previous content, with the revision of the change.
        (Some(IN), Some(OUT), &["DELETED /p/a/x l:app=web@3"]),
        (Some(OUT), Some("l:app=db;v=2"), &[]),
        (Some(IN), None, &["DELETED /p/a/x l:app=web@3"]),
        (Some(OUT), None, &[]),
        // A value that cannot be decoded is not an object, but it is not a deletion, either.
        (Some(IN), Some("!"), &[]),
        (Some("!"), Some(IN), &["ADDED /p/a/x l:app=web@3"]),
        (Some("!"), None, &[]),
    ];
    for (before, after, expected) in rows {
        let storage = TestStorage::new();
        if let Some(before) = before {
            storage.put("/p/a/x", before).await;
        }
        let cacher = start(&storage, config()).await;
        let from = cacher.snapshot(Freshness::Consistent).await.unwrap().revision();
        let options =
            WatchOptions { predicate: labelled("app", "web"), ..WatchOptions::new(WatchStart::After(from)) };
        let mut live = cacher.watch(options.clone()).await.unwrap();
        assert_eq!(ready(&mut live), [""; 0]);
        match after {
            Some(after) => storage.put("/p/a/x", after).await,
            None => storage.remove("/p/a/x").await.unwrap(),
        };
        assert_eq!(settled(&cacher, &mut live).await, *expected, "{before:?} -> {after:?}, live");
        let mut resumed = cacher.watch(options).await.unwrap();
        assert_eq!(ready(&mut resumed), *expected, "{before:?} -> {after:?}, from the log");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_starts_where_it_is_told() {
    use Freshness::{Any, Consistent, NotOlderThan};
    use WatchStart::{After, InitialEvents, Now, State};
    let state = ["ADDED /p/a/x v=2@4", "ADDED /p/b/y @3"];
    let end = "BOOKMARK 5 end";
    // Revisions 2 to 5 are written, 6 is written while the watch is open.
    let rows: &[(WatchStart, bool, &[&str])] = &[
        (After(Revision(1)), false, &["ADDED /p/a/x @2", "ADDED /p/b/y @3", "MODIFIED /p/a/x v=2@4"]),
        (After(Revision(3)), false, &["MODIFIED /p/a/x v=2@4"]),
        (After(Revision(5)), true, &[]),
        (State, false, &state),
        (State, true, &state),
        (Now(Any), true, &[]),
        (Now(Consistent), true, &[]),
        (Now(NotOlderThan(Revision(3))), true, &["MODIFIED /p/a/x v=2@4"]),
        (InitialEvents(Any), false, &state),
        (InitialEvents(Any), true, &[state[0], state[1], end]),
        (InitialEvents(Consistent), true, &[state[0], state[1], end]),
        (InitialEvents(NotOlderThan(Revision(5))), true, &[state[0], state[1], end]),
    ];
    for (watch_start, bookmarks, expected) in rows {
        let storage = TestStorage::new();
        let cacher = start(&storage, config()).await;
        storage.put("/p/a/x", "").await;
        storage.put("/p/b/y", "").await;
        storage.put("/p/a/x", "v=2").await;
        storage.put("/q/another-resource", "").await;
        let fresh = cacher.snapshot(Freshness::Consistent).await.unwrap();
        assert_eq!(fresh.revision(), Revision(5));
        // The cache is at the latest revision, so that a start at any freshness has everything.
        cacher.shared.advance(fresh.revision());
        let options = WatchOptions { bookmarks: *bookmarks, ..WatchOptions::new(*watch_start) };
        let mut watcher = cacher.watch(options).await.unwrap();
        assert_eq!(ready(&mut watcher), *expected, "{watch_start:?}");
        storage.put("/p/b/y", "v=2").await;
        assert_eq!(settled(&cacher, &mut watcher).await, ["MODIFIED /p/b/y v=2@6"], "{watch_start:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_the_future_waits_for_it() {
    let storage = TestStorage::new();
    let cacher = start(&storage, config()).await;
    let mut watcher = cacher.watch(WatchOptions::new(WatchStart::After(Revision(3)))).await.unwrap();
    for key in ["/p/a/2", "/p/a/3", "/p/a/4"] {
        storage.put(key, "").await;
    }
    assert_eq!(settled(&cacher, &mut watcher).await, ["ADDED /p/a/4 @4"]);
}

#[tokio::test(start_paused = true)]
async fn initial_events_from_a_revision_that_does_not_come_are_refused() {
    let storage = TestStorage::new();
    let cacher = start(&storage, config()).await;
    let start = WatchStart::InitialEvents(Freshness::NotOlderThan(Revision(9)));
    let refused = cacher.watch(WatchOptions::new(start)).await.err();
    let (requested, current) = (Revision(9), Revision(1));
    assert_eq!(refused, Some(CacherError::TooLargeResourceVersion { requested, current }));
}

#[tokio::test(start_paused = true)]
async fn a_scope_is_a_namespace_or_an_object_and_nothing_that_only_begins_alike() {
    let all = ["/p/a/x", "/p/a/xy", "/p/ab/x", "/p/b/x", "/p/cluster"];
    let namespace = |name: &str| WatchScope::Namespace(name.into());
    let rows: &[(WatchScope, &[&str])] = &[
        (WatchScope::All, &all),
        (namespace("a"), &["/p/a/x", "/p/a/xy"]),
        (namespace("ab"), &["/p/ab/x"]),
        (namespace("none"), &[]),
        (WatchScope::Object(Key::new("/p/a/x")), &["/p/a/x"]),
        (WatchScope::Object(Key::new("/p/cluster")), &["/p/cluster"]),
        (WatchScope::Object(Key::new("/p/a/z")), &[]),
    ];
    for (scope, expected) in rows {
        let storage = TestStorage::new();
        let cacher = start(&storage, config()).await;
        let options = |start| WatchOptions { scope: scope.clone(), ..WatchOptions::new(start) };
        let mut live = cacher.watch(options(WatchStart::Now(Freshness::Any))).await.unwrap();
        assert_eq!(ready(&mut live), [""; 0]);
        for key in all {
            storage.put(key, "").await;
        }
        let keys = |lines: Vec<String>| -> Vec<String> {
            lines.iter().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect()
        };
        assert_eq!(keys(settled(&cacher, &mut live).await), *expected, "{scope:?}, live");
        let mut initial = cacher.watch(options(WatchStart::State)).await.unwrap();
        assert_eq!(keys(ready(&mut initial)), *expected, "{scope:?}, initial");
        let mut resumed = cacher.watch(options(WatchStart::After(Revision(1)))).await.unwrap();
        assert_eq!(keys(ready(&mut resumed)), *expected, "{scope:?}, from the log");
    }
}

#[tokio::test(start_paused = true)]
async fn a_trigger_sees_objects_come_and_go() {
    let storage = TestStorage::new();
    let cacher = start(&storage, config()).await;
    let mut one = cacher.watch(on_node("one")).await.unwrap();
    let mut two = cacher.watch(on_node("two")).await.unwrap();
    let mut unbound = cacher.watch(on_node("")).await.unwrap();
    let mut named = cacher
        .watch(WatchOptions {
            trigger: Some(Trigger { field: "metadata.name".into(), value: "x".into() }),
            ..WatchOptions::new(WatchStart::Now(Freshness::Any))
        })
        .await
        .unwrap();
    for watcher in [&mut one, &mut two, &mut unbound, &mut named] {
        assert_eq!(ready(watcher), [""; 0]);
    }
    storage.put("/p/a/x", "").await;
    storage.put("/p/a/x", "node=one").await;
    storage.put("/p/a/x", "node=two").await;
    storage.put("/p/a/y", "node=two").await;
    storage.remove("/p/a/x").await;
    assert_eq!(settled(&cacher, &mut unbound).await, ["ADDED /p/a/x @2", "DELETED /p/a/x @3"]);
    assert_eq!(ready(&mut one), ["ADDED /p/a/x node=one@3", "DELETED /p/a/x node=one@4"]);
    assert_eq!(
        ready(&mut two),
        ["ADDED /p/a/x node=two@4", "ADDED /p/a/y node=two@5", "DELETED /p/a/x node=two@6"]
    );
    assert_eq!(
        ready(&mut named),
        [
            "ADDED /p/a/x @2",
            "MODIFIED /p/a/x node=one@3",
            "MODIFIED /p/a/x node=two@4",
            "DELETED /p/a/x node=two@6"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_is_framed_once_for_all_watchers() {
    let storage = TestStorage::new();
    let cacher = start(&storage, config()).await;
    let options = WatchOptions::new(WatchStart::Now(Freshness::Any));
    let mut watchers = Vec::new();
    for _ in 0..3 {
        let mut watcher = cacher.watch(options.clone()).await.unwrap();
        assert_eq!(ready(&mut watcher), [""; 0]);
        watchers.push(watcher);
    }
    storage.put("/p/a/x", "").await;
    storage.remove("/p/a/x").await;
    cacher.snapshot(Freshness::Consistent).await.unwrap();
    let made = Cell::new(0);
    let mut objects = Vec::new();
    for watcher in &mut watchers {
        for expected in [EventType::Added, EventType::Deleted] {
            let Some(WatchItem::Event { event_type, event }) = watcher.next().await else {
                panic!("an event")
            };
            assert_eq!(event_type, expected);
            let object = event.object(event_type).unwrap().clone();
            let frame = event.frame(event_type, RepresentationId(0), || {
                made.set(made.get() + 1);
                Ok::<_, ()>(object.json().clone())
            });
            assert_eq!(frame.unwrap(), object.json());
            // Another representation has its own frame.
            assert_eq!(event.frame(event_type, RepresentationId(1), || Err::<Bytes, _>("no")), Err("no"));
            objects.push(object);
        }
    }
    assert_eq!(made.get(), 2);
    assert!(Arc::ptr_eq(&objects[1], &objects[5]), "the deleted object is made once");
}
