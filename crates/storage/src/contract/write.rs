//! The contract of writes: create, update, delete, and times to live.

use super::*;
use crate::WriteError;
use std::{collections::BTreeSet, time::Instant};

/// Every write gets the next revision; the first one of a store is greater than 1.
pub async fn revisions_grow_by_one_from_above_one(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let before = current(&*storage).await;
    let first = put(&*storage, "/r/a/1", "1").await;
    assert!(first > Revision(1), "the first revision is {first}");
    assert_eq!(first.0, before.0 + 1);
    let second = put(&*storage, "/r/b/1", "1").await;
    assert_eq!(second.0, first.0 + 1);
    let third = set(&*storage, "/r/a/1", "2", first).await;
    assert_eq!(third.0, second.0 + 1);
    let fourth = remove(&*storage, "/r/b/1", second).await;
    assert_eq!(fourth.0, third.0 + 1);
    assert_eq!(current(&*storage).await, fourth);
}

/// A new key has the create's revision as both revisions; an update keeps the create revision.
pub async fn create_sets_both_revisions(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let created = put(&*storage, "/r/a", "1").await;
    let updated = set(&*storage, "/r/a", "2", created).await;
    let response = storage.get(&key("/r/a")).await.expect("get");
    let kv = response.kv.expect("the key exists");
    assert_eq!((kv.create_revision, kv.mod_revision), (created, updated));
    assert_eq!(response.revision, updated);
    assert_eq!(kv.key, key("/r/a"));
}

/// `KeyExists`, and the value is unchanged.
pub async fn create_of_an_existing_key_is_rejected(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    put(&*storage, "/r/a", "1").await;
    let again = storage.create(&key("/r/a"), Bytes::from_static(b"2").into(), None).await;
    assert!(matches!(again, Err(WriteError::KeyExists)), "{again:?}");
    expect_list(&*storage, request("/r/"), &[("/r/a", "1")]).await;
}

/// An update is a compare-and-swap on the modification revision; the conflict has the present pair.
pub async fn update_replaces_the_expected_revision_only(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let first = put(&*storage, "/r/a", "1").await;
    let second = set(&*storage, "/r/a", "2", first).await;
    for wrong in [first, Revision(second.0 + 1), Revision(0)] {
        let stale = storage.update(&key("/r/a"), Bytes::from_static(b"3").into(), wrong, None).await;
        let Err(WriteError::Conflict { current: Some(kv) }) = stale else { panic!("{wrong}: {stale:?}") };
        assert_eq!((&kv.value[..], kv.mod_revision, kv.create_revision), (&b"2"[..], second, first));
    }
    expect_list(&*storage, request("/r/"), &[("/r/a", "2")]).await;
}

/// A key that does not exist conflicts with any expected revision.
pub async fn update_of_a_missing_key_conflicts_with_nothing(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let created = put(&*storage, "/r/a", "1").await;
    remove(&*storage, "/r/a", created).await;
    for (name, expected) in [("/r/a", created), ("/r/never", Revision(0)), ("/r/never", created)] {
        let update = storage.update(&key(name), Bytes::from_static(b"2").into(), expected, None).await;
        assert!(matches!(update, Err(WriteError::Conflict { current: None })), "{name}: {update:?}");
        let delete = storage.delete(&key(name), expected).await;
        assert!(matches!(delete, Err(WriteError::Conflict { current: None })), "{name}: {delete:?}");
    }
}

/// A delete is a compare-and-swap, too.
pub async fn delete_removes_the_expected_revision_only(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let first = put(&*storage, "/r/a", "1").await;
    let second = set(&*storage, "/r/a", "2", first).await;
    let stale = storage.delete(&key("/r/a"), first).await;
    let Err(WriteError::Conflict { current: Some(kv) }) = stale else { panic!("{stale:?}") };
    assert_eq!((&kv.value[..], kv.mod_revision), (&b"2"[..], second));
    let deleted = remove(&*storage, "/r/a", second).await;
    let response = storage.get(&key("/r/a")).await.expect("get");
    assert_eq!((response.kv, response.revision), (None, deleted));
    expect_list(&*storage, request("/r/"), &[]).await;
}

/// A caller that has the value gets the same result, and the watches the same event, now and from history.
pub async fn delete_of_an_existing_value_is_like_any_delete(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let first = put(&*storage, "/r/a", "1").await;
    let second = set(&*storage, "/r/a", "2", first).await;
    let delete = async |name: &str, expected, value: &'static str| {
        storage.delete_existing(&key(name), expected, value.into()).await
    };
    let Err(WriteError::Conflict { current: Some(kv) }) = delete("/r/a", first, "1").await else {
        panic!("a conflict with the second value");
    };
    assert_eq!((kv.value, kv.mod_revision), ("2".into(), second));
    let missing = delete("/r/b", first, "1").await;
    assert!(matches!(missing, Err(WriteError::Conflict { current: None })), "{missing:?}");
    let mut live = watch(&*storage, "/r/", second).await;
    let deleted = delete("/r/a", second, "2").await.expect("delete");
    let expected = event(EventKind::Delete, "/r/a", "2", deleted);
    let event = next_writes(&mut live, 1).await;
    assert_eq!(event, std::slice::from_ref(&expected));
    let mut later = watch(&*storage, "/r/", second).await;
    assert_eq!(next_writes(&mut later, 1).await, [expected]);
    assert_eq!(storage.get(&key("/r/a")).await.expect("get").kv, None);
    put(&*storage, "/r/a", "3").await;
}

/// Only successful writes take a revision.
pub async fn failed_writes_take_no_revision(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let created = put(&*storage, "/r/a", "1").await;
    let wrong = Revision(created.0 + 7);
    storage.create(&key("/r/a"), Bytes::new().into(), None).await.expect_err("it exists");
    storage.update(&key("/r/a"), Bytes::new().into(), wrong, None).await.expect_err("wrong revision");
    storage.delete(&key("/r/a"), wrong).await.expect_err("wrong revision");
    assert_eq!(current(&*storage).await, created);
    assert_eq!(put(&*storage, "/r/b", "1").await.0, created.0 + 1);
}

/// A key that is created after its deletion is a new key with its own create revision.
pub async fn create_after_delete_starts_a_new_key(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let first = put(&*storage, "/r/a", "1").await;
    remove(&*storage, "/r/a", first).await;
    let again = put(&*storage, "/r/a", "2").await;
    let kv = storage.get(&key("/r/a")).await.expect("get").kv.expect("the key exists");
    assert_eq!((kv.create_revision, kv.mod_revision, &kv.value[..]), (again, again, &b"2"[..]));
}

/// Values of any bytes, and of any size that an object can have.
pub async fn values_come_back_byte_for_byte(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let every_byte: Vec<u8> = (0..=255).collect();
    for (index, size) in [0, 1, 255, 3_000, 4_096, 70_000, 1 << 20].into_iter().enumerate() {
        let value: Bytes = every_byte.iter().copied().cycle().take(size).collect();
        let name = key(&format!("/r/{index}/käse"));
        storage
            .create(&name, value.clone().into(), None)
            .await
            .unwrap_or_else(|error| panic!("{size}: {error}"));
        let kv = storage.get(&name).await.expect("get").kv.expect("the key exists");
        assert!(kv.value == value.into(), "{size} bytes differ");
        assert_eq!(kv.key, name);
    }
}

/// Each acknowledged write has its own revision, and the writes of one writer are in order.
pub async fn concurrent_writers_get_distinct_ascending_revisions(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let before = current(&*storage).await;
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let storage = Arc::clone(&storage);
            tokio::spawn(async move {
                let mut revisions = Vec::new();
                for object in 0..25 {
                    revisions.push(put(&*storage, &format!("/r/{writer}/{object}"), "1").await);
                }
                revisions
            })
        })
        .collect();
    let mut all = BTreeSet::new();
    for writer in writers {
        let revisions = writer.await.expect("a writer panicked");
        assert!(revisions.is_sorted(), "{revisions:?}");
        all.extend(revisions);
    }
    assert_eq!(all.len(), 8 * 25, "revisions are distinct");
    assert_eq!(all.last(), Some(&Revision(before.0 + 8 * 25)), "and without gaps");
    assert_eq!(storage.get_list(request("/r/")).await.expect("list").items.len(), 8 * 25);
}

/// Writes that share a sync are decided in order, each after those before it.
pub async fn concurrent_writes_of_a_key_have_one_winner(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let name = key("/r/a");
    let value = Bytes::from_static(b"1");
    let create = || storage.create(&name, value.clone().into(), None);
    let (a, b, c) = tokio::join!(create(), create(), create());
    let created: Vec<_> =
        [&a, &b, &c].into_iter().filter_map(|result| result.as_ref().ok().copied()).collect();
    let [created] = *created else { panic!("{a:?} {b:?} {c:?}") };
    assert!([a, b, c].iter().filter(|result| matches!(result, Err(WriteError::KeyExists))).count() == 2);

    let (update, delete) = tokio::join!(
        storage.update(&name, value.clone().into(), created, None),
        storage.delete(&name, created)
    );
    match (update, delete) {
        (Ok(updated), Err(WriteError::Conflict { current: Some(kv) })) => {
            assert_eq!(kv.mod_revision, updated);
        }
        (Err(WriteError::Conflict { current: None }), Ok(_)) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(current(&*storage).await.0, created.0 + 1);
}

/// Writers that retry on conflicts all succeed, each exactly once.
pub async fn concurrent_updates_of_a_key_lose_nothing(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    put(&*storage, "/r/counter", "0").await;
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let storage = Arc::clone(&storage);
            tokio::spawn(async move {
                for _ in 0..5 {
                    increment(&*storage).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("a writer panicked");
    }
    expect_list(&*storage, request("/r/"), &[("/r/counter", "40")]).await;
}

async fn increment(storage: &dyn Storage) {
    let name = key("/r/counter");
    let mut pair = storage.get(&name).await.expect("get").kv.expect("the counter exists");
    loop {
        let count: u32 = std::str::from_utf8(&pair.value).expect("text").parse().expect("a number");
        let value = Bytes::from((count + 1).to_string());
        match storage.update(&name, value.into(), pair.mod_revision, None).await {
            Ok(_) => return,
            Err(WriteError::Conflict { current }) => pair = current.expect("the counter exists"),
            Err(error) => panic!("{error}"),
        }
    }
}

/// A dropped write has happened completely or not at all.
pub async fn a_dropped_write_leaves_the_store_consistent(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let start = current(&*storage).await;
    for object in 0..20 {
        let name = key(&format!("/r/{object:02}"));
        let write = storage.create(&name, Bytes::from_static(b"1").into(), None);
        let _ = tokio::time::timeout(Duration::from_micros(object * 20), write).await;
    }
    let last = put(&*storage, "/r/last", "1").await;
    let response = storage.get_list(request("/r/")).await.expect("list");
    // A dropped write may still happen after that.
    assert!(response.revision >= last);
    let written = response.revision.0 - start.0;
    assert_eq!(response.items.len() as u64, written, "a revision for every key there is");
}

/// An expired key is deleted by a write with its own event, not early and not much too late.
pub async fn a_ttl_deletes_the_key_with_a_revision(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let ttl = Duration::from_secs(1);
    let started = Instant::now();
    let created =
        storage.create(&key("/r/a"), Bytes::from_static(b"1").into(), Some(ttl)).await.expect("create");
    let other = put(&*storage, "/r/b", "1").await;
    let mut stream = watch(&*storage, "/r/", other).await;
    let deleted = next_writes(&mut stream, 1).await;
    assert!(started.elapsed() >= ttl - Duration::from_millis(20), "after {:?}", started.elapsed());
    assert_eq!(deleted, [event(EventKind::Delete, "/r/a", "1", Revision(other.0 + 1))]);
    assert!(created < other);
    expect_list(&*storage, request("/r/"), &[("/r/b", "1")]).await;
}

/// The latest write decides the expiry of the key; without a time to live the key stays.
pub async fn an_update_replaces_the_ttl(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let (short, long) = (Some(Duration::from_secs(1)), Some(Duration::from_secs(3600)));
    let value = Bytes::from_static(b"1");
    for (name, next) in [("/r/kept", None), ("/r/longer", long)] {
        let created = storage.create(&key(name), value.clone().into(), short).await.expect("create");
        storage.update(&key(name), value.clone().into(), created, next).await.expect("update");
    }
    let created = storage.create(&key("/r/shorter"), value.clone().into(), long).await.expect("create");
    let updated = storage.update(&key("/r/shorter"), value.into(), created, short).await.expect("update");
    let mut stream = watch(&*storage, "/r/", updated).await;
    assert_eq!(
        next_writes(&mut stream, 1).await,
        [event(EventKind::Delete, "/r/shorter", "1", Revision(updated.0 + 1))]
    );
    expect_list(&*storage, request("/r/"), &[("/r/kept", "1"), ("/r/longer", "1")]).await;
}

/// The longest time to live is accepted, and has no bad effect.
pub async fn a_ttl_beyond_all_time_never_comes(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let created = storage.create(&key("/r/a"), Bytes::from_static(b"1").into(), Some(Duration::MAX)).await;
    let created = created.expect("create");
    let value = Bytes::from_static(b"2");
    storage.update(&key("/r/a"), value.into(), created, Some(Duration::MAX)).await.expect("update");
    expect_list(&*storage, request("/r/"), &[("/r/a", "2")]).await;
}
