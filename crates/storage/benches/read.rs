//! Measures the start, and reads that the watch cache does not answer, with a store of 20,000 pods.

mod pods;

use criterion::{Criterion, criterion_group, criterion_main};
use pintle_storage::{EmbeddedOptions, EmbeddedStorage, Key, ListRequest, Revision, Storage, WatchRequest};
use pods::Pods;
use std::{path::Path, sync::Arc};
use tokio::runtime::Runtime;

/// The server's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const OBJECTS: usize = 20_000;

fn open(directory: &Path) -> EmbeddedStorage {
    EmbeddedStorage::open(directory, EmbeddedOptions::default()).expect("open")
}

fn read(criterion: &mut Criterion) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory on a disk");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(fill(directory.path()));

    let mut group = criterion.benchmark_group("read");
    group.sample_size(20);
    group.bench_function("open", |bencher| bencher.iter(|| open(directory.path())));
    let storage = open(directory.path());
    let mut number = 0;
    group.bench_function("get", |bencher| {
        bencher.iter(|| {
            number = (number + 7_919) % OBJECTS;
            runtime.block_on(storage.get(&key(number))).expect("get")
        });
    });
    for (name, limit) in [("get_list/500", 500), ("get_list/5000", 5_000)] {
        group.bench_function(name, |bencher| bencher.iter(|| list(&runtime, &storage, limit)));
    }
    group.bench_function("watch/5000 from history", |bencher| {
        bencher.iter(|| runtime.block_on(replay(&storage, OBJECTS - 5_000)));
    });
    group.finish();
}

fn key(number: usize) -> Key {
    Key::new(format!("/registry/pods/default/pod-{number:09}"))
}

async fn fill(directory: &Path) {
    let storage = Arc::new(open(directory));
    let pods = Arc::new(Pods::new());
    let writers: Vec<_> = (0..64)
        .map(|writer| {
            let (storage, pods) = (Arc::clone(&storage), Arc::clone(&pods));
            tokio::spawn(async move {
                for number in (writer..OBJECTS).step_by(64) {
                    storage.create(&key(number), pods.pod(number as u64).into(), None).await.expect("create");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("a writer");
    }
    storage.close().await.expect("close");
}

fn list(runtime: &Runtime, storage: &EmbeddedStorage, limit: usize) {
    let prefix = "/registry/pods/".to_owned();
    let request = ListRequest { prefix, start_after: None, limit, revision: None };
    let response = runtime.block_on(storage.get_list(request)).expect("list");
    assert_eq!(response.items.len(), limit);
}

/// Reads all history after the first `after` objects.
async fn replay(storage: &EmbeddedStorage, after: usize) {
    let request = WatchRequest { prefix: "/registry/pods/".to_owned(), after: Revision(after as u64 + 1) };
    let mut stream = storage.watch(request).await.expect("watch");
    let mut events = 0;
    while events < OBJECTS - after {
        events += stream.next_batch().await.expect("events").len();
    }
    assert_eq!(events, OBJECTS - after);
}

criterion_group!(benches, read);
criterion_main!(benches);
