//! The contract of lists: order, pages, exact revisions.

use super::*;

/// Bytewise order, and no keys of neighbouring prefixes.
pub async fn list_is_ordered_and_isolated_by_prefix(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    for name in ["/r/pods/b", "/r/pods0", "/r/podsets/a", "/r/pods/a/x", "/r/pods/a", "/r/pods/A", "/r/pod"] {
        put(&*storage, name, "1").await;
    }
    let expected: &[(&str, &str)] =
        &[("/r/pods/A", "1"), ("/r/pods/a", "1"), ("/r/pods/a/x", "1"), ("/r/pods/b", "1")];
    let response = expect_list(&*storage, request("/r/pods/"), expected).await;
    assert!(!response.more);
    assert_eq!(response.revision, current(&*storage).await);
    expect_list(&*storage, request("/r/nothing/"), &[]).await;
    assert_eq!(storage.get_list(request("")).await.expect("list").items.len(), 7);
}

/// Pages of any size add up to the whole list.
pub async fn list_pages_cover_everything_once(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let mut names = Vec::new();
    for object in 0..10 {
        let name = format!("/r/a/{object}");
        put(&*storage, &name, "1").await;
        names.push(name);
    }
    put(&*storage, "/r/b/0", "1").await;
    for limit in [1, 3, 5, 9, 10, 11] {
        let mut found = Vec::new();
        let mut start_after = None;
        loop {
            let page = ListRequest { start_after: start_after.take(), limit, ..request("/r/a/") };
            let response = storage.get_list(page).await.expect("list");
            found.extend(response.items.iter().map(|kv| kv.key.to_string()));
            assert!(response.items.len() <= limit, "a page of {limit}");
            if !response.more {
                break;
            }
            assert_eq!(response.items.len(), limit, "a full page when more follows");
            start_after = response.items.last().map(|kv| kv.key.clone());
        }
        assert_eq!(found, names, "pages of {limit}");
    }
    let before = ListRequest { start_after: Some(key("/r/Z")), ..request("/r/a/") };
    assert_eq!(storage.get_list(before).await.expect("list").items.len(), 10, "a start before the prefix");
    let behind = ListRequest { start_after: Some(key("/r/a/9")), limit: 5, ..request("/r/a/") };
    let response = storage.get_list(behind).await.expect("list");
    assert!(response.items.is_empty() && !response.more, "a start behind the last key");
}

/// A list at a revision has exactly the writes up to it.
pub async fn list_at_a_revision_shows_that_state(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let first = put(&*storage, "/r/a", "1").await;
    let second = put(&*storage, "/r/b", "1").await;
    let third = set(&*storage, "/r/a", "2", first).await;
    let fourth = remove(&*storage, "/r/b", second).await;
    let fifth = put(&*storage, "/r/b", "2").await;
    let rows: &[(Revision, &[(&str, &str)])] = &[
        (first, &[("/r/a", "1")]),
        (second, &[("/r/a", "1"), ("/r/b", "1")]),
        (third, &[("/r/a", "2"), ("/r/b", "1")]),
        (fourth, &[("/r/a", "2")]),
        (fifth, &[("/r/a", "2"), ("/r/b", "2")]),
    ];
    for (revision, expected) in rows {
        let response = expect_list(&*storage, request_at("/r/", *revision), expected).await;
        assert_eq!(response.revision, *revision);
    }
    let response = storage.get_list(request_at("/r/", second)).await.expect("list");
    let revisions: Vec<_> = response.items.iter().map(|kv| (kv.create_revision, kv.mod_revision)).collect();
    assert_eq!(revisions, [(first, first), (second, second)]);
}

/// A paged list at a revision is not affected by later writes.
pub async fn list_pages_at_a_revision_ignore_later_writes(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let a = put(&*storage, "/r/a", "1").await;
    let c = put(&*storage, "/r/c", "1").await;
    let page = ListRequest { limit: 1, ..request("/r/") };
    let first = expect_list(&*storage, page.clone(), &[("/r/a", "1")]).await;
    assert!(first.more);
    assert_eq!(first.revision, c);
    put(&*storage, "/r/b", "1").await;
    remove(&*storage, "/r/c", c).await;
    set(&*storage, "/r/a", "2", a).await;
    let next = ListRequest { start_after: Some(key("/r/a")), revision: Some(first.revision), ..page };
    let second = expect_list(&*storage, next, &[("/r/c", "1")]).await;
    assert!(!second.more);
}

/// `FutureRevision`, with both revisions.
pub async fn list_in_the_future_is_rejected(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let now = put(&*storage, "/r/a", "1").await;
    let then = Revision(now.0 + 1);
    match storage.get_list(request_at("/r/", then)).await {
        Err(StorageError::FutureRevision { requested, current }) => {
            assert_eq!((requested, current), (then, now));
        }
        other => panic!("{other:?}"),
    }
}

/// A list that starts after a write was acknowledged has the write, and a revision not older than it.
pub async fn list_sees_acknowledged_writes(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    for object in 0..50 {
        let written = put(&*storage, &format!("/r/{object:02}"), "1").await;
        let response = storage.get_list(request("/r/")).await.expect("list");
        assert_eq!(response.items.len(), object + 1);
        assert!(response.revision >= written);
    }
}

/// The number of keys of a range at a revision, whatever the limit.
pub async fn count_is_the_length_of_the_list(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let mut revisions = Vec::new();
    for object in 0..8 {
        revisions.push(put(&*storage, &format!("/r/a/{object}"), "1").await);
        put(&*storage, &format!("/r/b/{object}"), "1").await;
    }
    revisions.push(remove(&*storage, "/r/a/3", *revisions.get(3).expect("a write")).await);
    revisions.push(set(&*storage, "/r/a/5", "2", *revisions.get(5).expect("a write")).await);
    for revision in revisions.into_iter().map(Some).chain([None]) {
        for prefix in ["/r/a/", "/r/", "/r/nothing/"] {
            for start_after in [None, Some("/r/a/2"), Some("/r/a/3"), Some("/r/a/x"), Some("/q")] {
                let request = ListRequest { revision, start_after: start_after.map(key), ..request(prefix) };
                let list = storage.get_list(request.clone()).await.expect("list");
                let count = storage.count(ListRequest { limit: 1, ..request }).await.expect("count");
                assert_eq!(count, list.items.len(), "{prefix} after {start_after:?} at {revision:?}");
            }
        }
    }
    let then = Revision(current(&*storage).await.0 + 1);
    match storage.count(request_at("/r/", then)).await {
        Err(StorageError::FutureRevision { requested, .. }) => assert_eq!(requested, then),
        other => panic!("{other:?}"),
    }
}
