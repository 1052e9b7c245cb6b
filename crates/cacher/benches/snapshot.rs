//! The costs of the snapshot with 5,000, 20,000 and 150,000 objects: publishing a write, walking it as a list does, finding by
//! predicate.

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use pintle_cacher::{
    Cacher, CacherConfig, DecodeError, DecodedObject, Freshness, Label, Labels, ObjectDecoder, Requirement,
    Selectable, Snapshot, TriggerField,
};
use pintle_storage::{Key, MemoryStorage, Payload, Revision, Storage};
use std::{hint::black_box, sync::Arc};
use tokio::runtime::{Builder, Runtime};

const PREFIX: &str = "/registry/pods/";

struct Decoder;

impl ObjectDecoder for Decoder {
    fn decode(&self, key: &Key, value: &Payload, _: Revision) -> Result<DecodedObject, DecodeError> {
        let name: Arc<str> = key.as_str().rsplit('/').next().unwrap_or_default().into();
        let number: usize = name.parse().unwrap_or_default();
        let app: Arc<str> = format!("app-{}", number % 50).into();
        Ok(DecodedObject {
            json: value.bytes.clone(),
            packed: None,
            namespace: "default".into(),
            name,
            selectable: Arc::new(Selectable {
                labels: Labels::from_iter([("app".into(), app), ("tier".into(), "web".into())]),
                fields: [format!("node-{}", number % 100).into()].into(),
                exact: None,
            }),
        })
    }

    fn rewrite_revision(&self, json: &Bytes, _: Revision) -> Bytes {
        json.clone()
    }
}

fn cacher(runtime: &Runtime, objects: usize) -> (Arc<MemoryStorage>, Arc<Cacher>) {
    let storage = Arc::new(MemoryStorage::new());
    let cacher = runtime.block_on(async {
        let value = Bytes::from(vec![b'x'; 3000]);
        for number in 0..objects {
            let key = Key::new(format!("{PREFIX}default/{number:06}"));
            storage.create(&key, value.clone().into(), None).await.expect("a write");
        }
        let mut config = CacherConfig::new("pods", PREFIX, Arc::new(Decoder));
        config.triggers = vec![TriggerField { name: "spec.nodeName".into(), index: 0 }];
        let cacher = Cacher::start(storage.clone(), config, &pintle_supervisor::Supervisor::current());
        cacher.wait_ready().await.expect("a list");
        cacher
    });
    (storage, cacher)
}

fn bytes(snapshot: &Snapshot) -> usize {
    snapshot.range(PREFIX, None).map(|object| object.size()).sum()
}

fn snapshot(criterion: &mut Criterion) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime");
    let mut group = criterion.benchmark_group("snapshot");
    for objects in [5_000, 20_000, 150_000] {
        let (storage, cacher) = cacher(&runtime, objects);
        let current = || runtime.block_on(cacher.snapshot(Freshness::Consistent)).expect("a snapshot");
        group.bench_function(BenchmarkId::new("scan", objects), |bencher| {
            let snapshot = current();
            bencher.iter(|| black_box(bytes(&snapshot)));
        });
        group.bench_function(BenchmarkId::new("page of 500 with the rest counted", objects), |bencher| {
            let snapshot = current();
            let start = Key::new(format!("{PREFIX}default/002000"));
            bencher.iter(|| {
                let last = snapshot.range(PREFIX, Some(&start)).nth(499).expect("an object");
                black_box(snapshot.count(PREFIX, Some(last.key())))
            });
        });
        group.bench_function(BenchmarkId::new("100 by label", objects), |bencher| {
            let snapshot = current();
            bencher.iter(|| {
                let matching =
                    snapshot.range(PREFIX, None).filter(|object| object.labels().get("app") == Some("app-7"));
                black_box(matching.count())
            });
        });
        group.bench_function(BenchmarkId::new("100 by label, indexed", objects), |bencher| {
            let app = Requirement::Labels(vec![Label { name: "app".into(), value: "app-7".into() }]);
            let found = |snapshot: &Snapshot| snapshot.candidates(PREFIX, None, Some(&app)).count();
            (0..3).for_each(|_| cacher.note_list(&current(), &app));
            while found(&current()) == objects {
                std::thread::yield_now();
            }
            let snapshot = current();
            bencher.iter(|| {
                let matching =
                    snapshot.candidates(PREFIX, None, Some(&app)).filter(|object| app.matches(object));
                black_box(matching.count())
            });
        });
        group.bench_function(BenchmarkId::new("50 by node", objects), |bencher| {
            let snapshot = current();
            bencher.iter(|| {
                let node = Requirement::Field(0, "node-7".into());
                let matching =
                    snapshot.candidates(PREFIX, None, Some(&node)).filter(|object| node.matches(object));
                black_box(matching.count())
            });
        });
        group.bench_function(BenchmarkId::new("consistent read, nothing to wait for", objects), |bencher| {
            let key = Key::new(format!("{PREFIX}default/000042"));
            bencher.iter(|| runtime.block_on(cacher.get(&key, Freshness::Consistent)).expect("an object"));
        });
        group.bench_function(BenchmarkId::new("update and consistent read", objects), |bencher| {
            let key = Key::new(format!("{PREFIX}default/000042"));
            let value = Bytes::from(vec![b'y'; 3000]);
            let mut revision = runtime
                .block_on(cacher.get(&key, Freshness::Consistent))
                .ok()
                .and_then(|(object, _)| object)
                .expect("an object")
                .revision();
            bencher.iter(|| {
                runtime.block_on(async {
                    revision =
                        storage.update(&key, value.clone().into(), revision, None).await.expect("an update");
                    cacher.get(&key, Freshness::Consistent).await.expect("an object")
                })
            });
            runtime.block_on(storage.compact(revision)).expect("a compaction");
        });
        group.bench_function(BenchmarkId::new("create, delete and consistent read", objects), |bencher| {
            let key = Key::new(format!("{PREFIX}default/{:06}x", objects / 2));
            let value = Bytes::from(vec![b'z'; 3000]);
            let mut revision = Revision(0);
            bencher.iter(|| {
                runtime.block_on(async {
                    let created = storage.create(&key, value.clone().into(), None).await.expect("a create");
                    cacher.get(&key, Freshness::Consistent).await.expect("a read");
                    revision = storage.delete(&key, created).await.expect("a delete");
                    cacher.get(&key, Freshness::Consistent).await.expect("a read")
                })
            });
            runtime.block_on(storage.compact(revision)).expect("a compaction");
        });
        cacher.stop();
    }
    group.finish();
}

criterion_group!(benches, snapshot);
criterion_main!(benches);
