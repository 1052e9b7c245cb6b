//! The memory of a cache's objects, and of the states that are retained for continue tokens.

#![allow(clippy::unwrap_used, reason = "tests")]

use bytes::Bytes;
use pintle_cacher::{
    Cacher, CacherConfig, DecodeError, DecodedObject, Freshness, Labels, ObjectDecoder, Selectable,
    TriggerField,
};
use pintle_counting_allocator::{CountingAllocator, peak_of};
use pintle_storage::{Key, MemoryStorage, Payload, Revision, Storage};
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const PREFIX: &str = "/registry/pods/";
/// The size of an object's JSON, in bytes.
const SIZE: usize = 3000;

/// Shows the stored bytes. The field is the object's number modulo the number of nodes.
struct Decoder {
    nodes: usize,
}

impl ObjectDecoder for Decoder {
    fn decode(&self, key: &Key, value: &Payload, _: Revision) -> Result<DecodedObject, DecodeError> {
        let name: Arc<str> = key.as_str().rsplit('/').next().unwrap_or_default().into();
        let number: usize = name.parse().unwrap_or_default();
        Ok(DecodedObject {
            json: value.bytes.clone(),
            packed: None,
            namespace: "default".into(),
            name,
            selectable: Arc::new(Selectable {
                labels: Labels::default(),
                fields: [format!("node-{}", number % self.nodes).into()].into(),
                exact: None,
            }),
        })
    }

    fn rewrite_revision(&self, json: &Bytes, _: Revision) -> Bytes {
        json.clone()
    }
}

fn key(number: usize) -> Key {
    Key::new(format!("{PREFIX}default/{number:06}"))
}

fn config(nodes: usize) -> CacherConfig {
    let mut config = CacherConfig::new("pods", PREFIX, Arc::new(Decoder { nodes }));
    config.triggers = vec![TriggerField { name: "spec.nodeName".into(), index: 0 }];
    config
}

async fn start(storage: &Arc<MemoryStorage>, config: CacherConfig) -> Arc<Cacher> {
    let cacher = Cacher::start(storage.clone(), config, &pintle_supervisor::Supervisor::current());
    cacher.wait_ready().await.unwrap();
    cacher
}

/// Both tests in one, because the counters are those of the process.
#[test]
fn memory_is_bounded() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    an_index_takes_few_bytes_an_object(&runtime);
    a_hundred_thousand_abandoned_tokens_take_bounded_memory(&runtime);
}

fn an_index_takes_few_bytes_an_object(runtime: &tokio::runtime::Runtime) {
    const OBJECTS: usize = 30_000;
    let storage = Arc::new(MemoryStorage::new());
    runtime.block_on(async {
        let value = Bytes::from(vec![b'x'; SIZE]);
        for number in 0..OBJECTS {
            storage.create(&key(number), value.clone().into(), None).await.unwrap();
        }
    });
    let memory_of = |config: CacherConfig| {
        let before = pintle_counting_allocator::in_use();
        let cacher = runtime.block_on(start(&storage, config));
        let after = pintle_counting_allocator::in_use();
        drop(cacher);
        // The ended tasks drop what they have.
        runtime.block_on(async {
            while pintle_counting_allocator::in_use() > before + (after - before) / 100 {
                tokio::task::yield_now().await;
            }
        });
        (after - before) / OBJECTS
    };
    let without = memory_of(CacherConfig { triggers: Vec::new(), ..config(1000) });
    let with = memory_of(config(1000));
    println!("{without} bytes an object without an index, {with} with one");
    assert!(without < 480, "{without}");
    assert!(with - without < 40, "{}", with - without);
}

fn a_hundred_thousand_abandoned_tokens_take_bounded_memory(runtime: &tokio::runtime::Runtime) {
    const OBJECTS: usize = 1000;
    const TOKENS: usize = 100_000;
    const LOG: usize = 1 << 20;
    const RETAINED: usize = 4 << 20;
    let storage = Arc::new(MemoryStorage::new());
    let config = CacherConfig { log_bytes_max: LOG, retained_bytes_max: RETAINED, ..config(100) };
    runtime.block_on(async {
        for number in 0..OBJECTS {
            storage.create(&key(number), vec![b'x'; SIZE].into(), None).await.unwrap();
        }
    });
    let before = pintle_counting_allocator::in_use();
    let cacher = runtime.block_on(start(&storage, config));
    let abandon = async |tokens: usize| {
        for token in 0..tokens {
            // A stride that is coprime to their number changes all objects in turn.
            let key = key(token * 7 % OBJECTS);
            let current = storage.get(&key).await.unwrap().kv.unwrap().mod_revision;
            storage.update(&key, vec![b'x'; SIZE].into(), current, None).await.unwrap();
            let snapshot = cacher.snapshot(Freshness::Consistent).await.unwrap();
            cacher.keep_for_token(&snapshot, PREFIX, &key, Some(token));
            if token % 100 == 0 {
                storage.compact(snapshot.revision()).await.unwrap();
            }
        }
    };
    // The log and the retained states fill up at first.
    runtime.block_on(abandon(2000));
    let ((), more) = peak_of(|| runtime.block_on(abandon(TOKENS)));
    // Between two compactions the store has the values of a hundred writes.
    let store = 100 * (SIZE + 300);
    println!("{more} bytes more for {TOKENS} tokens");
    assert!(more < store + (1 << 20), "{more}");
    let budget = cacher.config().log_budget.used();
    assert!(budget <= LOG + RETAINED, "{budget}");
    let all = pintle_counting_allocator::in_use() - before;
    println!("{all} bytes of events and retained states");
    assert!(all < OBJECTS * 600 + LOG + RETAINED + store, "{all}");
    cacher.stop();
}
