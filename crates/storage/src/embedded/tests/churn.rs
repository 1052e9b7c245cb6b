//! Measures the disk use of a cluster over a long time: 100 nodes and 5,000 pods make the writes of such a cluster
//! second by second, as fast as the engine accepts them, with a compaction every five simulated minutes.
//!
//! A test run simulates two hours of a smaller cluster; `cargo xtask churn` simulates a week: `PINTLE_CHURN_HOURS`,
//! `PINTLE_CHURN_NODES`.

use super::*;
use pintle_fault_vfs::Random;
use std::{collections::VecDeque, time::Instant};
use tokio::task::JoinSet;

/// The number of simulated seconds whose writes are made concurrently.
const STEP: u64 = 2;
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// An object: its key, the size of its value, the revision of its last write.
struct Object {
    key: Key,
    size: usize,
    at: Revision,
}

impl Object {
    fn new(key: String, size: usize) -> Object {
        Object { key: Key::new(key), size, at: Revision(0) }
    }
}

struct Cluster {
    storage: Arc<EmbeddedStorage>,
    nodes: u64,
    /// Leases of nodes and of the leaders of eight controllers.
    leases: Vec<Object>,
    node_status: Vec<Object>,
    pods: Vec<Object>,
    /// With the second at which they expire.
    events: VecDeque<(u64, Object)>,
    random: Random,
    made: u64,
    writes: u64,
}

/// The operation on an object.
enum Todo {
    Write,
    Delete,
}

impl Cluster {
    async fn new(storage: Arc<EmbeddedStorage>, nodes: u64) -> Cluster {
        let names = |prefix: &'static str, count: u64, size| {
            (0..count).map(move |number| Object::new(format!("{prefix}/{number:05}"), size)).collect()
        };
        let mut cluster = Cluster {
            storage,
            nodes,
            leases: names("/registry/leases/kube-node-lease", nodes + 8, 500),
            node_status: names("/registry/minions/node", nodes, 8_000),
            pods: names("/registry/pods/default/web", nodes * 50, 3_000),
            events: VecDeque::new(),
            random: Random::new(1),
            made: 0,
            writes: 0,
        };
        for mut all in [
            std::mem::take(&mut cluster.leases),
            std::mem::take(&mut cluster.node_status),
            std::mem::take(&mut cluster.pods),
        ] {
            let count = all.len();
            let mut written = Vec::new();
            while !all.is_empty() {
                let rest = all.split_off(all.len().min(500));
                written.extend(cluster.write(std::mem::replace(&mut all, rest), &Todo::Write).await);
            }
            match count as u64 {
                count if count == nodes + 8 => cluster.leases = written,
                count if count == nodes => cluster.node_status = written,
                _ => cluster.pods = written,
            }
        }
        cluster
    }

    /// Writes or deletes objects concurrently.
    async fn write(&mut self, objects: Vec<Object>, todo: &Todo) -> Vec<Object> {
        let mut tasks = JoinSet::new();
        self.writes += objects.len() as u64;
        for mut object in objects {
            let storage = Arc::clone(&self.storage);
            let delete = matches!(todo, Todo::Delete);
            tasks.spawn(async move {
                let value = noise(object.key.as_str(), object.size);
                object.at = match object.at {
                    Revision(0) => storage.create(&object.key, value.into(), None).await,
                    at if delete => storage.delete(&object.key, at).await,
                    at => storage.update(&object.key, value.into(), at, None).await,
                }
                .unwrap();
                object
            });
        }
        let mut written = tasks.join_all().await;
        written.sort_by(|a, b| a.key.cmp(&b.key));
        written
    }

    /// Writes some objects of a list again.
    async fn touch(&mut self, list: fn(&mut Cluster) -> &mut Vec<Object>, which: impl Fn(u64) -> bool) {
        let objects = std::mem::take(list(self));
        let mut number = 0;
        let (touched, mut rest): (Vec<_>, Vec<_>) = objects.into_iter().partition(|_| {
            number += 1;
            which(number)
        });
        rest.extend(self.write(touched, &Todo::Write).await);
        rest.sort_by(|a, b| a.key.cmp(&b.key));
        *list(self) = rest;
    }

    /// Makes the writes of the step that begins at `second`.
    async fn step(&mut self, second: u64) {
        let (nodes, phase) = (self.nodes, second / STEP);
        // A node renews its lease every ten seconds, a leader every two; a status is written every five minutes.
        self.touch(|cluster| &mut cluster.leases, |number| number > nodes || number % 5 == phase % 5).await;
        self.touch(|cluster| &mut cluster.node_status, |number| number % 150 == phase % 150).await;
        // A pod's status changes every ten minutes.
        self.touch(|cluster| &mut cluster.pods, |number| number % 300 == phase % 300).await;
        // Per second and hundred nodes, one pod ends, another one replaces it and gets its status in three writes,
        // and two events about it are written, which expire after an hour.
        let replaced = (STEP * nodes).div_ceil(100);
        for _ in 0..replaced {
            let old = self.random.below(self.pods.len() as u64) as usize;
            let old = self.pods.swap_remove(old);
            self.write(vec![old], &Todo::Delete).await;
        }
        self.made += replaced;
        let first = self.made;
        let mut pods: Vec<_> = (first..first + replaced)
            .map(|number| Object::new(format!("/registry/pods/default/new-{number:09}"), 2_500))
            .collect();
        for size in [2_500, 2_700, 2_900, 3_000] {
            pods.iter_mut().for_each(|pod| pod.size = size);
            pods = self.write(pods, &Todo::Write).await;
        }
        self.pods.append(&mut pods);
        let events = (first * 2..(first + replaced) * 2)
            .map(|number| Object::new(format!("/registry/events/default/{number:09}"), 900))
            .collect();
        let events = self.write(events, &Todo::Write).await;
        self.events.extend(events.into_iter().map(|event| (second + HOUR, event)));
        let due = self.events.partition_point(|(at, _)| *at <= second);
        let expired = self.events.drain(..due).map(|(_, event)| event).collect();
        self.write(expired, &Todo::Delete).await;
    }

    fn live_bytes(&self) -> u64 {
        let lists = [&self.leases, &self.node_status, &self.pods];
        let listed = lists.into_iter().flatten().chain(self.events.iter().map(|(_, event)| event));
        listed.map(|object| object.size as u64).sum()
    }
}

#[test]
fn disk_use_is_bounded_by_what_is_live_and_five_minutes() {
    let (hours, nodes) = (variable("PINTLE_CHURN_HOURS", 2), variable("PINTLE_CHURN_NODES", 10));
    let factory = Embedded::fast();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build();
    runtime.unwrap().block_on(async {
        let options = EmbeddedOptions { spare_bytes: 1 << 20, ..EmbeddedOptions::default() };
        let storage = Arc::new(EmbeddedStorage::open(factory.0.path(), options).unwrap());
        let mut cluster = Cluster::new(Arc::clone(&storage), nodes).await;
        let length = |path: PathBuf| path.metadata().map_or(0, |metadata| metadata.len());
        let mut before = Revision(0);
        let (mut early, mut late) = (0, 0);
        let started = Instant::now();
        for second in (0..hours * HOUR).step_by(STEP as usize) {
            cluster.step(second).await;
            if (second + STEP).is_multiple_of(5 * MINUTE) {
                // As the server compacts: history is kept for five to ten minutes.
                storage.compact(before).await.unwrap();
                before = storage.current_revision().await.unwrap();
                let size = length(paths::database(factory.0.path()));
                let log = length(paths::wal(factory.0.path()));
                let longest = checkpointer::Checkpointer::longest(EmbeddedOptions::default().wal_bytes);
                assert!(log <= longest + (1 << 20), "the log has {log} bytes");
                let half = if second < hours * HOUR / 2 { &mut early } else { &mut late };
                *half = size.max(*half);
            }
            if (second + STEP).is_multiple_of((hours * HOUR / 14 / STEP * STEP).max(STEP)) {
                let megabytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
                eprintln!(
                    "after {:6.1} h: {:9} writes, live {:5.1} MB, database {:6.1} MB, log {:5.1} MB, {:5.0} s",
                    (second + STEP) as f64 / HOUR as f64,
                    cluster.writes,
                    megabytes(cluster.live_bytes()),
                    megabytes(length(paths::database(factory.0.path()))),
                    megabytes(length(paths::wal(factory.0.path()))),
                    started.elapsed().as_secs_f64(),
                );
            }
        }
        assert!(late <= early + early / 4, "it grew from {early} to {late} bytes");

        // Most objects are deleted, and the file shrinks.
        let pods = std::mem::take(&mut cluster.pods);
        cluster.write(pods, &Todo::Delete).await;
        let last = storage.current_revision().await.unwrap();
        storage.compact(last).await.unwrap();
        let live = cluster.live_bytes();
        // Free pages are returned in small steps between commits.
        let connection = rusqlite::Connection::open(paths::database(factory.0.path())).unwrap();
        let pragma = |name: &str| -> u64 {
            connection.query_row(&format!("PRAGMA {name}"), (), |row| row.get::<_, i64>(0)).unwrap() as u64
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while pragma("freelist_count") > (pragma("page_count") / 2).max((1 << 20) / 8192) {
            assert!(Instant::now() < deadline, "the space is not given back");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        drop(connection);
        storage.close().await.unwrap();
        let size = paths::database(factory.0.path()).metadata().unwrap().len();
        eprintln!("when all pods are gone: live {live} bytes, database {size} bytes");
        assert!(size <= 4 * live + (2 << 20), "{size} bytes for {live}");
    });
}
