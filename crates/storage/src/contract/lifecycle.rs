//! The contract of opening, closing, health and size.

use super::*;
use crate::WriteError;

/// Watches end without an error, and every later call fails with `Closed`.
pub async fn close_ends_watches_and_rejects_calls(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    let start = current(&*storage).await;
    let mut replay = watch(&*storage, "/r/", start).await;
    let created = put(&*storage, "/r/a", "1").await;
    let mut live = watch(&*storage, "/r/", created).await;
    storage.close().await.expect("close");
    assert_eq!(next_writes(&mut replay, 1).await, [event(EventKind::Create, "/r/a", "1", created)]);
    for stream in [&mut replay, &mut live] {
        assert_eq!(next_batch(stream).await, None);
        assert_eq!(next_batch(stream).await, None, "and stays so");
    }

    let name = key("/r/a");
    let value = Bytes::from_static(b"2");
    let writes = [
        storage.create(&name, value.clone().into(), None).await,
        storage.update(&name, value.into(), created, None).await,
        storage.delete(&name, created).await,
    ];
    for write in writes {
        assert!(matches!(write, Err(WriteError::Storage(StorageError::Closed))), "{write:?}");
    }
    let request_after = WatchRequest { prefix: "/r/".to_owned(), after: created };
    let calls = [
        ("get", storage.get(&name).await.map(drop)),
        ("get_list", storage.get_list(request("/r/")).await.map(drop)),
        ("watch", storage.watch(request_after).await.map(drop)),
        ("current_revision", storage.current_revision().await.map(drop)),
        ("request_progress", storage.request_progress().await),
        ("compact", storage.compact(created).await),
        ("health", storage.health().await),
        ("size", storage.size().await.map(drop)),
    ];
    for (call, result) in calls {
        assert_eq!(result, Err(StorageError::Closed), "{call}");
    }
}

/// Closing a closed store has no effect.
pub async fn close_twice_is_fine(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    put(&*storage, "/r/a", "1").await;
    storage.close().await.expect("close");
    storage.close().await.expect("close again");
}

/// The calls behind `/readyz` and the size metric.
pub async fn an_open_store_is_healthy_and_has_a_size(factory: &dyn StorageFactory) {
    let storage = factory.open().await;
    put(&*storage, "/r/a", &"x".repeat(10_000)).await;
    assert_eq!(storage.health().await, Ok(()));
    assert!(storage.size().await.expect("size") >= 10_000);
}
