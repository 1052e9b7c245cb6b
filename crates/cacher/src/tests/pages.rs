//! Tests of pages: those of old states cost what they return, and are exact.

use crate::{
    CachedObject, Cacher, CacherConfig, CacherError, Freshness, Label, Matches, PageRead, PageRequest,
    PageState, ReadSource, Requirement, Snapshot, WatchOptions, WatchScope, WatchStart,
    testing::{PREFIX, TestStorage, config, contents, on_node, settled, start},
};
use pintle_storage::{Key, Revision, Storage};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// A cacher whose event log has no history, with this much memory for states of continue tokens.
fn config_of(retained_bytes_max: usize) -> CacherConfig {
    CacherConfig { log_capacity_min: 1, log_capacity_max: 1, page_size: 4, retained_bytes_max, ..config() }
}

/// A list that is read page by page.
struct List<'a> {
    cacher: &'a Cacher,
    prefix: &'static str,
    limit: usize,
    matches: Option<Matches<'a>>,
}

/// One page of a list.
#[derive(Debug, PartialEq)]
struct Page {
    contents: Vec<String>,
    last: Option<Key>,
    remaining: Option<usize>,
    is_from_storage: bool,
}

impl List<'_> {
    /// Reads a page as the verb does: selects it from a state, and keeps what the next page needs.
    async fn page(&self, state: PageState, after: Option<&Key>) -> Result<(Page, Snapshot), CacherError> {
        let List { cacher, prefix, limit, matches } = *self;
        let counts_rest = matches.is_none();
        let request = PageRequest { prefix, start_after: after, limit, matches, counts_rest };
        let is_match = |object: &CachedObject| matches.is_none_or(|matches| matches(object));
        let (page, snapshot) = match cacher.page(state, request).await? {
            PageRead::State(snapshot) => {
                let matching: Vec<_> =
                    snapshot.range(prefix, after).filter(|object| is_match(object)).cloned().collect();
                let last = matching.get(limit - 1).filter(|_| matching.len() > limit);
                let last = last.map(|last| last.key().clone());
                let remaining = last.as_ref().filter(|_| counts_rest);
                let remaining = remaining.map(|last| snapshot.count(prefix, Some(last)));
                let contents = matching.iter().take(limit).map(render).collect();
                (Page { contents, last, remaining, is_from_storage: false }, snapshot)
            }
            PageRead::Page(page) => {
                let contents = page.snapshot.range(prefix, after).map(render).collect();
                let (last, remaining) = (page.last, page.remaining);
                (Page { contents, last, remaining, is_from_storage: true }, page.snapshot)
            }
        };
        if let Some(last) = &page.last {
            cacher.keep_for_token(&snapshot, prefix, last, page.remaining);
        }
        Ok((page, snapshot))
    }
}

fn render(object: &Arc<CachedObject>) -> String {
    format!("{} {}", object.key(), std::str::from_utf8(&object.json()).unwrap())
}

async fn fill(storage: &TestStorage) {
    for namespace in ["a", "b"] {
        for number in 0..10 {
            storage.put(&format!("/p/{namespace}/{number}"), &format!("node=n{}", number % 3)).await;
        }
    }
}

/// Changes every object, deletes some and creates others, until the cache has it.
async fn churn(storage: &TestStorage, cacher: &Cacher) {
    for number in 0..10 {
        storage.put(&format!("/p/a/{number}"), "v=2").await;
        storage.put(&format!("/p/a/{number}x"), "v=2").await;
        storage.remove(&format!("/p/b/{number}")).await;
    }
    cacher.shared.snapshot_from_cache(Freshness::Consistent).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn pages_are_those_of_the_first_whatever_happens_meanwhile() {
    for (read_source, retained_bytes) in
        [(ReadSource::Cache, 1 << 20), (ReadSource::Cache, 0), (ReadSource::Storage, 0)]
    {
        let storage = TestStorage::new();
        let cacher = start(&storage, CacherConfig { read_source, ..config_of(retained_bytes) }).await;
        let on_node = |object: &CachedObject| object.field(0) == Some("n1");
        for (prefix, limit, matches) in [
            ("/p/", 3, None),
            ("/p/b/", 4, None),
            ("/p/", 7, None),
            ("/p/", 3, Some(&on_node as Matches<'_>)),
            ("/p/b/", 2, Some(&on_node as Matches<'_>)),
        ] {
            fill(&storage).await;
            let whole = cacher.list(prefix, Freshness::Consistent).await.unwrap();
            let is_match = |object: &CachedObject| matches.is_none_or(|matches| matches(object));
            let expected: Vec<_> =
                whole.range(prefix, None).filter(|object| is_match(object)).map(render).collect();
            let list = List { cacher: &cacher, prefix, limit, matches };
            let mut state = PageState::Fresh(Freshness::Consistent);
            let mut after = None;
            let mut found = Vec::new();
            loop {
                let (page, snapshot) = list.page(state, after.as_ref()).await.unwrap();
                let is_first = after.is_none();
                let is_from_storage =
                    read_source == ReadSource::Storage || (retained_bytes == 0 && !is_first);
                assert_eq!(page.is_from_storage, is_from_storage);
                assert_eq!(snapshot.revision(), whole.revision());
                found.extend(page.contents);
                let rest = expected.len() - found.len();
                assert_eq!(page.remaining, (matches.is_none() && rest > 0).then_some(rest));
                churn(&storage, &cacher).await;
                state = PageState::Exact(snapshot.revision());
                match page.last {
                    Some(last) => after = Some(last),
                    None => break,
                }
            }
            assert_eq!(found, expected, "{prefix} in pages of {limit}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_from_the_store_is_read_without_the_others() {
    let storage = TestStorage::new();
    fill(&storage).await;
    let cacher = start(&storage, config_of(0)).await;
    let list = List { cacher: &cacher, prefix: "/p/", limit: 3, matches: None };
    let (first, snapshot) = list.page(PageState::Fresh(Freshness::Consistent), None).await.unwrap();
    churn(&storage, &cacher).await;
    let fetched = || cacher.metrics().storage_list_fetched.load(Ordering::Relaxed);
    let before = fetched();
    let state = PageState::Exact(snapshot.revision());
    let (second, _) = list.page(state, first.last.as_ref()).await.unwrap();
    assert_eq!((second.contents.len(), second.remaining, fetched() - before), (3, Some(14), 3));
    // Neither the order of the pages nor their number depends on what is remembered.
    let (again, _) = list.page(state, first.last.as_ref()).await.unwrap();
    assert_eq!(again, second);
    let (counted, _) = list.page(state, Some(&Key::new("/p/a/6"))).await.unwrap();
    assert_eq!((counted.contents.len(), counted.remaining), (3, Some(10)));
    // More than a batch.
    let list = List { limit: 9, ..list };
    let before = fetched();
    let (long, _) = list.page(state, None).await.unwrap();
    assert_eq!((long.contents.len(), long.remaining, fetched() - before), (9, Some(11), 9));
}

#[tokio::test(start_paused = true)]
async fn a_token_lives_until_the_compaction_and_no_longer() {
    for retained_bytes in [0, 1 << 20] {
        let storage = TestStorage::new();
        fill(&storage).await;
        let cacher = start(&storage, config_of(retained_bytes)).await;
        let list = List { cacher: &cacher, prefix: "/p/", limit: 3, matches: None };
        let (first, snapshot) = list.page(PageState::Fresh(Freshness::Consistent), None).await.unwrap();
        let revision = snapshot.revision();
        for _ in 0..3 {
            churn(&storage, &cacher).await;
            tokio::time::sleep(Duration::from_secs(200)).await;
        }
        storage.compact(revision).await.unwrap();
        let (second, _) = list.page(PageState::Exact(revision), first.last.as_ref()).await.unwrap();
        assert_eq!((second.contents.len(), second.remaining), (3, Some(14)));
        // The greatest age has passed.
        assert!(second.is_from_storage);
        let oldest = Revision(revision.0 + 1);
        storage.compact(oldest).await.unwrap();
        let expired = list.page(PageState::Exact(revision), first.last.as_ref()).await;
        assert_eq!(expired.unwrap_err(), CacherError::Expired { requested: revision, oldest });
        let future = list.page(PageState::Exact(Revision(1000)), None).await;
        assert!(matches!(future, Err(CacherError::TooLargeResourceVersion { .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_of_a_state_that_has_just_changed_is_retained() {
    let storage = TestStorage::new();
    fill(&storage).await;
    let config = CacherConfig { log_capacity_min: 1000, log_capacity_max: 1000, ..config_of(1 << 20) };
    let cacher = start(&storage, config).await;
    let before = cacher.snapshot(Freshness::Consistent).await.unwrap();
    churn(&storage, &cacher).await;
    cacher.keep_for_token(&before, PREFIX, &Key::new("/p/a/1"), None);
    assert_eq!(cacher.shared.retained.lock().len(), 1);
    let retained = cacher.shared.retained.lock().get(before.revision()).unwrap();
    assert_eq!(contents(&retained), contents(&before));
    // A list that was read from the store is not retained.
    let read = cacher.shared.list_prefix_from_storage("/p/a/", None).await.unwrap();
    cacher.keep_for_token(&read, PREFIX, &Key::new("/p/a/1"), None);
    assert_eq!(cacher.shared.retained.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn retained_states_are_dropped_by_the_clock_and_with_the_cache() {
    let storage = TestStorage::new();
    fill(&storage).await;
    let cacher = start(&storage, config_of(1 << 20)).await;
    let keep = async || {
        let snapshot = cacher.snapshot(Freshness::Consistent).await.unwrap();
        cacher.keep_for_token(&snapshot, PREFIX, &Key::new("/p/a/1"), Some(1));
        cacher.shared.retained.lock().len()
    };
    assert_eq!(keep().await, 1);
    tokio::time::sleep(Duration::from_secs(200)).await;
    storage.put("/p/a/1", "v=2").await;
    assert_eq!(keep().await, 2);
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(cacher.shared.retained.lock().len(), 1);
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(cacher.shared.retained.lock().len(), 0);
    assert_eq!(keep().await, 1);
    storage.control(|controls| controls.panics = true);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(cacher.shared.retained.lock().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn objects_that_cannot_be_read_are_no_part_of_a_page() {
    let storage = TestStorage::new();
    fill(&storage).await;
    storage.put("/p/a/1", "!").await;
    let cacher = start(&storage, config_of(0)).await;
    let revision = cacher.snapshot(Freshness::Consistent).await.unwrap().revision();
    churn(&storage, &cacher).await;
    let list = List { cacher: &cacher, prefix: "/p/", limit: 3, matches: None };
    let (page, snapshot) = list.page(PageState::Exact(revision), None).await.unwrap();
    let keys: Vec<_> = snapshot.range(PREFIX, None).map(|object| object.key().to_string()).collect();
    assert_eq!(keys, ["/p/a/0", "/p/a/2", "/p/a/3"]);
    assert_eq!(page.remaining, Some(16));
    assert_eq!(snapshot.unreadable_range(PREFIX).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn candidates_are_those_of_the_index() {
    let storage = TestStorage::new();
    fill(&storage).await;
    storage.put("/p/cluster-scoped", "node=n1").await;
    let cacher = start(&storage, config_of(1 << 20)).await;
    let first = cacher.snapshot(Freshness::Consistent).await.unwrap();
    cacher.keep_for_token(&first, PREFIX, &Key::new("/p/a/1"), None);
    storage.put("/p/a/1", "node=n0").await;
    storage.put("/p/a/3", "node=n1").await;
    storage.remove("/p/b/4").await;
    let second = cacher.snapshot(Freshness::Consistent).await.unwrap();
    let n1 = &Requirement::Field(0, "n1".into());
    let named = &Requirement::Name("4".into());
    let check = |snapshot: &Snapshot,
                 prefix: &str,
                 after: Option<&str>,
                 requirement: &Requirement,
                 expected: &[&str]| {
        let after = after.map(Key::new);
        let found = snapshot.candidates(prefix, after.as_ref(), Some(requirement));
        let found: Vec<_> = found.map(|object| object.key().as_str()).collect();
        assert_eq!(found, expected, "{prefix} {after:?} {requirement:?}");
        let all = snapshot.range(prefix, after.as_ref()).filter(|object| requirement.matches(object));
        assert_eq!(all.map(|object| object.key().as_str()).collect::<Vec<_>>(), expected);
    };
    let all = ["/p/a/1", "/p/a/4", "/p/a/7", "/p/b/1", "/p/b/4", "/p/b/7", "/p/cluster-scoped"];
    check(&first, "/p/", None, n1, &all);
    check(&first, "/p/", Some("/p/a/4"), n1, &all[2..]);
    check(&first, "/p/b/", Some("/p/a/4"), n1, &all[3..6]);
    check(&second, "/p/a/", None, n1, &["/p/a/3", "/p/a/4", "/p/a/7"]);
    check(&second, "/p/b/", None, n1, &["/p/b/1", "/p/b/7"]);
    check(&second, "/p/", None, &Requirement::Field(0, "none".into()), &[]);
    check(&first, "/p/", None, named, &["/p/a/4", "/p/b/4"]);
    check(&first, "/p/", Some("/p/a/4"), named, &["/p/b/4"]);
    check(&first, "/p/", Some("/p/a/3"), named, &["/p/a/4", "/p/b/4"]);
    check(&first, "/p/", Some("/p/b/4"), named, &[]);
    check(&first, "/p/b/", None, named, &["/p/b/4"]);
    check(&second, "/p/", None, named, &["/p/a/4"]);
    // A range within the namespace ends before the next namespace, where the search goes on.
    let mut within = first.candidates("/p/a/4", None, Some(named));
    assert_eq!((within.next().is_some(), within.size_hint()), (true, (0, Some(0))));
    check(&first, "/p/", None, &Requirement::Name("cluster-scoped".into()), &["/p/cluster-scoped"]);
    // The index of a retained state is that of the state.
    let past = cacher.snapshot_at(first.revision()).await.unwrap();
    check(&past, "/p/", None, n1, &all);
}

#[tokio::test(start_paused = true)]
async fn initial_events_of_an_indexed_value_are_found_by_the_index() {
    let storage = TestStorage::new();
    fill(&storage).await;
    let cacher = start(&storage, config_of(0)).await;
    let options =
        WatchOptions { start: WatchStart::State, scope: WatchScope::Namespace("b".into()), ..on_node("n2") };
    let mut watcher = cacher.watch(options).await.unwrap();
    let events = settled(&cacher, &mut watcher).await;
    assert_eq!(events, ["ADDED /p/b/2 node=n2@14", "ADDED /p/b/5 node=n2@17", "ADDED /p/b/8 node=n2@20"]);
}

#[tokio::test(start_paused = true)]
async fn labels_that_lists_ask_for_are_indexed() {
    let storage = TestStorage::new();
    for number in 0..1200 {
        storage
            .put(&format!("/p/{}/{number:04}", number % 2), &format!("l:app={};l:tier=web", number % 100))
            .await;
    }
    let cacher = start(&storage, config_of(1 << 20)).await;
    let label = |name: &str, value: &str| Label { name: name.into(), value: value.into() };
    let app = Requirement::Labels(vec![label("tier", "web"), label("app", "7")]);
    let tier = Requirement::Labels(vec![label("tier", "web")]);
    let found = |snapshot: &Snapshot, prefix: &str, requirement: &Requirement| {
        let found =
            snapshot.candidates(prefix, None, Some(requirement)).map(|object| object.key().to_string());
        found.collect::<Vec<_>>()
    };
    let first = cacher.snapshot(Freshness::Consistent).await.unwrap();
    assert_eq!(found(&first, "/p/", &app).len(), 1200);
    for _ in 0..3 {
        cacher.note_list(&first, &app);
        cacher.note_list(&first, &tier);
    }
    while found(&cacher.current().unwrap(), "/p/", &app).len() == 1200 {
        tokio::task::yield_now().await;
    }
    // All objects have the other label.
    assert_eq!(found(&cacher.current().unwrap(), "/p/", &tier).len(), 1200);
    let other = Requirement::Labels(vec![label("app", "50")]);
    assert_eq!(found(&cacher.current().unwrap(), "/p/", &other).len(), 12);
    storage.put("/p/1/0107", "l:app=8").await;
    storage.put("/p/1/0008", "l:app=7").await;
    storage.put("/p/1/0207", "l:app=7;v=2").await;
    storage.put("/p/1/new", "l:app=7").await;
    storage.remove("/p/1/0007").await;
    let second = cacher.snapshot(Freshness::Consistent).await.unwrap();
    let expected: Vec<_> = second
        .range("/p/", None)
        .filter(|object| object.labels().get("app") == Some("7"))
        .map(|object| object.key().to_string())
        .collect();
    assert_eq!(expected.len(), 12);
    assert_eq!(found(&second, "/p/", &app), expected);
    assert_eq!(found(&second, "/p/0/", &app), [""; 0]);
    // A past state has the index of its own.
    let past = cacher.snapshot_at(first.revision()).await.unwrap();
    assert!(found(&past, "/p/", &app).contains(&"/p/1/0107".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn indexes_of_labels_that_get_too_large_are_dropped() {
    const OBJECTS: usize = 1100;
    let storage = TestStorage::new();
    let key = |number: usize| format!("/p/{number:04}");
    let labels = |each: usize, number: usize| {
        let labels: Vec<_> =
            ["a", "b", "c"].iter().map(|name| format!("l:{name}={}", number % each)).collect();
        labels.join(";")
    };
    for number in 0..OBJECTS {
        storage.put(&key(number), &labels(50, number)).await;
    }
    let cacher = start(&storage, config_of(1 << 20)).await;
    let one = |name: &str| Requirement::Labels(vec![Label { name: name.into(), value: "1".into() }]);
    let found = |name: &str| {
        let snapshot = cacher.current().unwrap();
        snapshot.candidates("/p/", None, Some(&one(name))).count()
    };
    let first = cacher.snapshot(Freshness::Consistent).await.unwrap();
    for name in ["a", "b", "c"] {
        (0..3).for_each(|_| cacher.note_list(&first, &one(name)));
        while found(name) == OBJECTS {
            tokio::task::yield_now().await;
        }
    }
    // With values that all differ there is room for one index: that of the label that was asked for last.
    for number in 0..OBJECTS {
        storage.put(&key(number), &labels(OBJECTS, number)).await;
    }
    cacher.snapshot(Freshness::Consistent).await.unwrap();
    assert_eq!([found("a"), found("b"), found("c")], [OBJECTS, OBJECTS, 1]);
}
