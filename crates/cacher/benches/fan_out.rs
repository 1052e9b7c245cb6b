//! The cost of an update until every matching watcher has its frame: 50 watchers that all match, and 500 of which the
//! five of one node match. Objects are 3 KB; nothing is encoded, a frame is one copy of the object's bytes.

use bytes::{BufMut, Bytes, BytesMut};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pintle_cacher::{
    Cacher, CacherConfig, DecodeError, DecodedObject, Freshness, Labels, ObjectDecoder, RepresentationId,
    Selectable, Trigger, TriggerField, WatchItem, WatchOptions, WatchStart,
};
use pintle_storage::{Key, MemoryStorage, Payload, Revision, Storage};
use std::{hint::black_box, sync::Arc};
use tokio::{runtime::Builder, sync::mpsc};

const PREFIX: &str = "/registry/pods/";

/// The value begins with the node's name, up to a space.
struct Decoder;

impl ObjectDecoder for Decoder {
    fn decode(&self, key: &Key, value: &Payload, _: Revision) -> Result<DecodedObject, DecodeError> {
        let node = value.split(|byte| *byte == b' ').next().unwrap_or_default();
        Ok(DecodedObject {
            json: value.bytes.clone(),
            packed: None,
            namespace: "default".into(),
            name: key.as_str().rsplit('/').next().unwrap_or_default().into(),
            selectable: Arc::new(Selectable {
                labels: Labels::default(),
                fields: [String::from_utf8_lossy(node).into()].into(),
                exact: None,
            }),
        })
    }

    fn rewrite_revision(&self, json: &Bytes, _: Revision) -> Bytes {
        json.clone()
    }
}

fn value(node: &str) -> Bytes {
    let mut value = BytesMut::from(format!("{node} ").as_bytes());
    value.put_bytes(b'x', 3000);
    value.freeze()
}

fn options(node: Option<String>) -> WatchOptions {
    let node: Option<Arc<str>> = node.map(Into::into);
    WatchOptions {
        predicate: node.clone().map(|node| -> pintle_cacher::Predicate {
            Arc::new(move |object| object.field(0) == Some(&*node))
        }),
        trigger: node.map(|value| Trigger { field: "spec.nodeName".into(), value }),
        ..WatchOptions::new(WatchStart::Now(Freshness::Any))
    }
}

/// One task per watcher, as for a connection: takes the ready items, frames them, and reports their number.
async fn serve(cacher: Arc<Cacher>, options: WatchOptions, served: mpsc::UnboundedSender<usize>) {
    let mut watcher = cacher.watch(options).await.expect("a watch from now");
    served.send(0).expect("the bench listens");
    let mut items = Vec::new();
    while watcher.next_batch(64, &mut items).await {
        let count = items.len();
        for item in items.drain(..) {
            let WatchItem::Event { event_type, event } = item else { continue };
            let frame = event.frame(event_type, RepresentationId(0), || {
                let object = event.object(event_type).ok_or("no object")?;
                let mut frame = BytesMut::with_capacity(object.size() + 64);
                frame.put_slice(event_type.as_str().as_bytes());
                frame.put_slice(&object.json());
                Ok::<_, &str>(frame.freeze())
            });
            black_box(frame.expect("a frame"));
        }
        if served.send(count).is_err() {
            return;
        }
    }
}

fn fan_out(criterion: &mut Criterion) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime");
    let mut group = criterion.benchmark_group("fan_out");
    // (watchers, nodes they are spread over, watchers that match the update)
    for (watchers, nodes, wanted) in [(50, None, 50), (500, Some(100), 5), (500, None, 500)] {
        let storage = Arc::new(MemoryStorage::new());
        let (served, mut serving) = mpsc::unbounded_channel();
        let key = Key::new(format!("{PREFIX}default/web-0"));
        let (cacher, mut revision) = runtime.block_on(async {
            let revision = storage.create(&key, value("node-0").into(), None).await.expect("a first write");
            let config = CacherConfig {
                triggers: vec![TriggerField { name: "spec.nodeName".into(), index: 0 }],
                ..CacherConfig::new("pods", PREFIX, Arc::new(Decoder))
            };
            let cacher = Cacher::start(storage.clone(), config, &pintle_supervisor::Supervisor::current());
            cacher.wait_ready().await.expect("a list");
            for watcher in 0..watchers {
                let node = nodes.map(|nodes| format!("node-{}", watcher % nodes));
                tokio::spawn(serve(cacher.clone(), options(node), served.clone()));
            }
            for _ in 0..watchers {
                serving.recv().await;
            }
            (cacher, revision)
        });
        let value = value("node-0");
        group.throughput(Throughput::Elements(wanted as u64));
        let name = format!("{watchers} watchers, {wanted} want it");
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| {
                runtime.block_on(async {
                    revision =
                        storage.update(&key, value.clone().into(), revision, None).await.expect("an update");
                    let mut seen = 0;
                    while seen < wanted {
                        seen += serving.recv().await.unwrap_or_default();
                    }
                });
            });
            // The store keeps history until it is compacted.
            runtime.block_on(storage.compact(revision)).expect("a compaction");
        });
        cacher.stop();
    }
    group.finish();
}

criterion_group!(benches, fan_out);
criterion_main!(benches);
