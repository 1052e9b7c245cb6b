//! Many writers, short watches, storage watches that break: each watcher sees every write after its start exactly
//! once, in order, and ends with the state of the store.

use crate::{
    Cacher, CacherConfig, Freshness, WatchItem, WatchOptions, WatchStart,
    testing::{TestStorage, config, contents, labelled, on_node, start},
};
use pintle_storage::{Key, Revision, Storage};
use proptest::prelude::*;
use std::{collections::BTreeMap, sync::Arc};

const WRITERS: u64 = 4;
const WRITES: u64 = 300;

/// Follows a resource as an informer does, until it has seen `last`: starts with initial events, then alternates
/// between resuming from its last revision and requesting initial events again.
async fn inform(cacher: Arc<Cacher>, restart_every: usize, last: Revision) -> Vec<String> {
    let initial =
        || WatchOptions { bookmarks: true, ..WatchOptions::new(WatchStart::InitialEvents(Freshness::Any)) };
    let mut revision = Revision(0);
    let mut objects: BTreeMap<Key, Revision> = BTreeMap::new();
    let mut is_initial = true;
    let mut seen = 0;
    let mut watcher = cacher.watch(initial()).await.unwrap();
    while revision < last || is_initial {
        let Some(item) = watcher.next().await else { panic!("the watch ended at {revision}") };
        let event = match item {
            WatchItem::Event { event, .. } => event,
            WatchItem::Bookmark { revision: reached, initial_events_end } => {
                assert!(initial_events_end && is_initial && reached >= revision);
                is_initial = false;
                revision = reached;
                continue;
            }
        };
        // No change is missing: the replaced object is the one that was seen last.
        let key = event.current().or(event.previous()).unwrap().key().clone();
        assert_eq!(event.previous().map(|object| object.revision()), objects.get(&key).copied());
        match event.current() {
            Some(current) => objects.insert(key, current.revision()),
            None => objects.remove(&key),
        };
        if is_initial {
            continue;
        }
        assert!(event.revision() > revision, "{} after {revision}", event.revision());
        revision = event.revision();
        // A watcher that has seen an event finds the event's state in the cache.
        assert!(cacher.snapshot(Freshness::Any).await.unwrap().revision() >= revision);
        seen += 1;
        if seen % (2 * restart_every) == 0 {
            (is_initial, objects) = (true, BTreeMap::new());
            watcher = cacher.watch(initial()).await.unwrap();
        } else if seen % restart_every == 0 {
            watcher = cacher.watch(WatchOptions::new(WatchStart::After(revision))).await.unwrap();
        }
    }
    objects.iter().map(|(key, revision)| format!("{key} {revision}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_watcher_sees_every_write_once_and_in_order() {
    let storage = TestStorage::new();
    // Short queues, so that watchers also read the event log.
    let cacher = start(&storage, CacherConfig { queue_capacity: 8, ..config() }).await;
    let last = Revision(1 + WRITERS * WRITES + 1);
    let informers: Vec<_> =
        [1, 7, 100, 100_000].map(|every| tokio::spawn(inform(cacher.clone(), every, last))).into();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let storage = storage.clone();
            tokio::spawn(async move {
                let mut written = 0;
                let mut step = writer;
                while written < WRITES {
                    step += 1;
                    // Each writer has its own keys, so that every call is one write.
                    let key = format!("/p/{writer}/{}", step * 31 % 11);
                    let wrote = match step % 5 {
                        0 => storage.remove(&key).await.is_some(),
                        _ => {
                            storage.put(&key, "").await;
                            true
                        }
                    };
                    written += u64::from(wrote);
                    if written % 100 == 0 {
                        storage.control(|controls| controls.breaks += 1);
                    }
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    storage.put("/p/last", "").await;
    let newest = cacher.snapshot(Freshness::Consistent).await.unwrap();
    assert_eq!(newest.revision(), last);
    let expected: Vec<_> =
        newest.range("/p/", None).map(|object| format!("{} {}", object.key(), object.revision())).collect();
    for informer in informers {
        assert_eq!(informer.await.unwrap(), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_consistent_read_never_misses_its_own_write() {
    let storage = TestStorage::new();
    let cacher = start(&storage, config()).await;
    let readers: Vec<_> = (0..4)
        .map(|reader| {
            let (storage, cacher) = (storage.clone(), cacher.clone());
            tokio::spawn(async move {
                let key = Key::new(format!("/p/a/{reader}"));
                for round in 0..200 {
                    let revision = storage.put(key.as_str(), "").await;
                    if round % 20 == reader {
                        storage.control(|controls| controls.breaks += 1);
                    }
                    let (object, read) = cacher.get(&key, Freshness::Consistent).await.unwrap();
                    assert_eq!(object.unwrap().revision(), revision);
                    assert!(read >= revision);
                }
            })
        })
        .collect();
    for reader in readers {
        reader.await.unwrap();
    }
    assert_eq!(storage.current_revision().await.unwrap(), Revision(801));
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, &'static str),
    Remove(u8),
    OtherResource,
    Break,
    Watch,
}

fn step() -> impl Strategy<Value = Step> {
    let text = prop::sample::select(vec!["", "node=n", "l:app=web", "node=n;l:app=web", "node=m", "!"]);
    prop_oneof![
        6 => (0..6_u8, text).prop_map(|(key, text)| Step::Put(key, text)),
        2 => (0..6_u8).prop_map(Step::Remove),
        1 => Just(Step::OtherResource),
        1 => Just(Step::Break),
        2 => Just(Step::Watch),
    ]
}

/// A watcher's view: the objects of the events it received. A watcher that began while an object was unreadable may
/// receive a change of an object that it has not seen.
fn follow(view: &mut BTreeMap<Key, String>, lines: &[String], strict: bool) {
    for line in lines {
        let mut words = line.splitn(3, ' ');
        let (event_type, key, text) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        let before = match event_type {
            "DELETED" => view.remove(key),
            _ => view.insert(Key::new(key), text.to_owned()),
        };
        assert!(!strict || before.is_some() == (event_type != "ADDED"), "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_state_at_a_start_and_the_events_after_it_make_the_state_at_the_end(
        steps in prop::collection::vec(step(), 1..60),
        unreadable in any::<bool>(),
        log_capacity in 4..64_usize,
        queue_capacity in 1..8_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let storage = TestStorage::new();
            let config = CacherConfig { log_capacity_min: 4, log_capacity_max: log_capacity, queue_capacity, ..config() };
            let cacher = start(&storage, config).await;
            let filters = || [None, labelled("app", "web"), on_node("n").predicate];
            let mut watchers = Vec::new();
            for step in steps {
                match step {
                    Step::Put(key, text) => {
                        let text = if text == "!" && !unreadable { "" } else { text };
                        storage.put(&format!("/p/a/{key}"), text).await;
                    }
                    Step::Remove(key) => {
                        storage.remove(&format!("/p/a/{key}")).await;
                    }
                    Step::OtherResource => {
                        storage.put("/q/a/x", "").await;
                    }
                    Step::Break => storage.control(|controls| controls.breaks += 1),
                    Step::Watch => {
                        for (which, predicate) in filters().into_iter().enumerate() {
                            let start = WatchStart::InitialEvents(Freshness::Consistent);
                            let trigger = on_node("n").trigger.filter(|_| which == 2);
                            let options = WatchOptions { predicate, trigger, ..WatchOptions::new(start) };
                            watchers.push((which, BTreeMap::new(), cacher.watch(options).await.unwrap()));
                        }
                    }
                }
                cacher.snapshot(Freshness::Consistent).await.unwrap();
                for (at, (_, view, watcher)) in watchers.iter_mut().enumerate() {
                    // Some watchers read at once, some rarely, but none more rarely than the event log allows.
                    if at % 2 == 0 || at % 3 == 0 {
                        follow(view, &crate::testing::ready(watcher), !unreadable);
                    }
                }
            }
            let newest = cacher.snapshot(Freshness::Consistent).await.unwrap();
            for (which, mut view, mut watcher) in watchers {
                let mut lines = crate::testing::ready(&mut watcher);
                if lines.last().is_some_and(|line| line == "END") {
                    // The watcher was too slow for so short a log.
                    lines.pop();
                    continue;
                }
                follow(&mut view, &lines, !unreadable);
                // Watchers keep the last readable state of an object that is unreadable now.
                view.retain(|key, _| newest.unreadable(key).is_none());
                let predicate = filters()[which].clone();
                let expected: Vec<_> = newest
                    .range("/p/", None)
                    .filter(|object| predicate.as_ref().is_none_or(|predicate| predicate(object)))
                    .map(|object| object.key().clone())
                    .collect();
                assert_eq!(view.keys().cloned().collect::<Vec<_>>(), expected);
                if which == 0 {
                    let view: Vec<_> = view.iter().map(|(key, text)| format!("{key} {text}")).collect();
                    assert_eq!(view, contents(&newest));
                }
            }
        });
    }
}
