//! Measures a write beside many watches: a server has a watch for each resource, custom resources included.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use pintle_storage::{Key, MemoryStorage, Revision, Storage, WatchRequest, WatchStream};
use tokio::runtime::Runtime;

/// The server's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn watches(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut group = criterion.benchmark_group("watches");
    for count in [1, 1_000, 10_000] {
        let storage = MemoryStorage::new();
        let _others: Vec<_> = (1..count).map(|number| watch(&runtime, &storage, &plural(number))).collect();
        let mut watched = watch(&runtime, &storage, &plural(0));
        let mut number = 0_u64;
        group.bench_function(BenchmarkId::new("create", count), |bencher| {
            bencher.iter(|| {
                number += 1;
                let key = Key::new(format!("{}default/{number:09}", plural(0)));
                runtime.block_on(async {
                    storage.create(&key, "value".into(), None).await.expect("create");
                    watched.next_batch().await.expect("its event")
                })
            });
        });
    }
    group.finish();
}

/// The prefix of a custom resource.
fn plural(number: usize) -> String {
    format!("/registry/group{}.example.com/plural{number}/", number % 50)
}

fn watch(runtime: &Runtime, storage: &MemoryStorage, prefix: &str) -> WatchStream {
    let request = WatchRequest { prefix: prefix.to_owned(), after: Revision(1) };
    runtime.block_on(storage.watch(request)).expect("watch")
}

criterion_group!(benches, watches);
criterion_main!(benches);
