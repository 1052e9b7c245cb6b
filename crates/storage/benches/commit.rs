//! Measures durable writes of pods to the embedded engine, by one writer and by many that share syncs (group commit):
//! the time of a write (`wall`), and its user and system time in this process (`cpu`). Then deletes by 16 writers.

mod pods;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pintle_storage::{EmbeddedOptions, EmbeddedStorage, Key, Storage};
use pods::Pods;
use rustix::time::{ClockId, clock_gettime};
use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// The server's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn commit(criterion: &mut Criterion) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory on a disk");
    let storage = EmbeddedStorage::open(directory.path(), EmbeddedOptions::default()).expect("open");
    let storage: Arc<dyn Storage> = Arc::new(storage);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    let runtime = runtime.expect("a runtime");
    let next = Arc::new(AtomicU64::new(0));

    let mut group = criterion.benchmark_group("commit");
    group.throughput(Throughput::Elements(1)).sample_size(10).measurement_time(Duration::from_secs(3));
    for writers in [1, 16, 64] {
        group.bench_function(BenchmarkId::new("wall", writers), |bencher| {
            bencher.iter_custom(|writes| {
                let started = Instant::now();
                runtime.block_on(create(&storage, &next, writers, writes));
                started.elapsed()
            });
        });
        group.bench_function(BenchmarkId::new("cpu", writers), |bencher| {
            bencher.iter_custom(|writes| {
                let before = process_time();
                runtime.block_on(create(&storage, &next, writers, writes));
                process_time() - before
            });
        });
    }
    // The value of a delete is read back from the database, or its caller has it.
    for existing in [false, true] {
        let name = if existing { "delete_existing" } else { "delete" };
        group.bench_function(BenchmarkId::new(name, 16), |bencher| {
            bencher.iter_custom(|writes| {
                let first = next.load(Ordering::Relaxed);
                runtime.block_on(create(&storage, &next, 64, writes));
                runtime.block_on(delete(&storage, first..next.load(Ordering::Relaxed), existing))
            });
        });
    }
    group.finish();
    runtime.block_on(storage.close()).expect("close");
}

/// Deletes keys from 16 tasks, and returns the time it took.
async fn delete(storage: &Arc<dyn Storage>, numbers: Range<u64>, existing: bool) -> Duration {
    let pods = Pods::new();
    let mut deletes = Vec::new();
    for number in numbers {
        let key = key(number);
        let at = storage.get(&key).await.expect("get").kv.expect("the key").mod_revision;
        deletes.push((key, at, pods.pod(number)));
    }
    let share = deletes.len().div_ceil(16).max(1);
    // Until the database has all of them.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let started = Instant::now();
    let tasks = deletes.chunks(share).map(|share| {
        let (storage, share) = (Arc::clone(storage), share.to_vec());
        tokio::spawn(async move {
            for (key, at, pod) in share {
                let deleted = match existing {
                    true => storage.delete_existing(&key, at, pod.into()).await,
                    false => storage.delete(&key, at).await,
                };
                deleted.expect("delete");
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("a writer");
    }
    started.elapsed()
}

fn key(number: u64) -> Key {
    Key::new(format!("/registry/pods/default/pod-{number:09}"))
}

/// Creates `writes` keys from `writers` tasks; each task waits for its write to be durable.
async fn create(storage: &Arc<dyn Storage>, next: &Arc<AtomicU64>, writers: u64, writes: u64) {
    let pods = Arc::new(Pods::new());
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let (storage, next, pods) = (Arc::clone(storage), Arc::clone(next), Arc::clone(&pods));
            let share = writes / writers + u64::from(writer < writes % writers);
            tokio::spawn(async move {
                for _ in 0..share {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    storage.create(&key(number), pods.pod(number).into(), None).await.expect("create");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a writer");
    }
}

fn process_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

criterion_group!(benches, commit);
criterion_main!(benches);
