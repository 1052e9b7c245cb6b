//! Tests of objects that become readable without a write.

use crate::{
    Cacher, Freshness, WatchOptions, WatchStart,
    testing::{config, contents, ready},
};
use bytes::Bytes;
use pintle_storage::{
    BoxFuture, Key, MemoryStorage, Storage, TransformError, Transformed, TransformedStorage, ValueTransformer,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Refuses values that begin with `locked`, until it is open.
#[derive(Default)]
struct Lock {
    open: AtomicBool,
    refused: AtomicUsize,
}

impl ValueTransformer for Lock {
    fn to_storage<'a>(&'a self, _: &'a Key, value: Bytes) -> BoxFuture<'a, Result<Bytes, TransformError>> {
        Box::pin(std::future::ready(Ok(value)))
    }

    fn from_storage<'a>(
        &'a self,
        _: &'a Key,
        stored: Bytes,
    ) -> BoxFuture<'a, Result<Transformed, TransformError>> {
        let is_locked = stored.starts_with(b"locked") && !self.open.load(Ordering::Relaxed);
        self.refused.fetch_add(usize::from(is_locked), Ordering::Relaxed);
        Box::pin(std::future::ready(match is_locked {
            true => Err(TransformError("locked".to_owned())),
            false => Ok(Transformed { value: stored.into(), stale: false }),
        }))
    }
}

async fn create(storage: &dyn Storage, key: &str, value: &str) {
    storage.create(&Key::new(key), Bytes::from(value.to_owned()).into(), None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_becomes_readable_is_there_and_watchers_start_again() {
    let engine: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let lock = Arc::new(Lock::default());
    let storage = Arc::new(TransformedStorage::new(engine.clone(), vec![lock.clone()]));
    create(&*engine, "/p/a/bad", "!").await;
    for number in 10..30 {
        create(&*engine, &format!("/p/a/{number}"), "locked=1").await;
    }
    let cacher = Cacher::start(storage.clone(), config(), &pintle_supervisor::Supervisor::current());
    cacher.wait_ready().await.unwrap();
    let mut watcher = cacher.watch(WatchOptions::new(WatchStart::Now(Freshness::Any))).await.unwrap();
    let snapshot = async || cacher.snapshot(Freshness::Consistent).await.unwrap();
    assert!(snapshot().await.is_empty());
    assert_eq!(ready(&mut watcher), [""; 0]);

    // While nothing changes, retries are few and watchers continue.
    let refused = lock.refused.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(120)).await;
    let looks = lock.refused.load(Ordering::Relaxed) - refused;
    assert!((8..8 * 9).contains(&looks), "{looks}");
    create(&*storage, "/p/a/new", "").await;
    snapshot().await;
    assert_eq!(ready(&mut watcher), ["ADDED /p/a/new @23"]);

    lock.open.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(31)).await;
    let there = contents(&snapshot().await);
    assert_eq!(there.len(), 21);
    assert_eq!(there[0], "/p/a/10 locked=1@3");
    assert_eq!(ready(&mut watcher), ["END"]);

    // No retry can help the remaining object: a value that does not decode stays so.
    let mut watcher = cacher.watch(WatchOptions::new(WatchStart::Now(Freshness::Any))).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(ready(&mut watcher), [""; 0]);
    assert_eq!(snapshot().await.unreadable_range("/p/").count(), 1);
}
