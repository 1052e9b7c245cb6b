//! Measures creates of pods by 16 and by 64 writers, alternating between the embedded engine and a real etcd: one
//! run, one disk, and both sync the writes they acknowledge.
//!
//! `PINTLE_ETCD` is the path of etcd (`cargo xtask bench writers` installs it; without it only the embedded engine is
//! measured, for profiling), `TMPDIR` selects the disk. CPU time is the sum over all processes: this one, with the
//! writers and the embedded engine or the etcd client, and etcd. Outside of `cargo bench`, only a short run of the
//! embedded engine is made.

mod pods;

use pintle_harness::{Etcd, EtcdConfig};
use pintle_storage::{EmbeddedOptions, EmbeddedStorage, EtcdOptions, EtcdStorage, Key, Storage};
use pods::Pods;
use rustix::{
    fs::statfs,
    time::{ClockId, clock_gettime},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The server's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const WRITERS: [usize; 2] = [16, 64];
/// The number of measurements per engine; the result is the median.
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(4);
const WARM_UP: Duration = Duration::from_secs(1);
/// The kernel's type number of a file system in memory.
const TMPFS: i64 = 0x0102_1994;

fn main() {
    let directory = TempDir::with_prefix("pintle-writers-").expect("a temporary directory");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let embedded = EmbeddedStorage::open(directory.path().join("embedded"), EmbeddedOptions::default());
    let embedded = Engine::new("embedded", Arc::new(embedded.expect("an embedded store")), None);
    if !std::env::args().any(|arg| arg == "--bench") {
        let outcome = embedded.measure(&runtime, 16, Duration::from_millis(50));
        assert!(outcome.writes > 0, "nothing was written");
        return;
    }
    let kind = statfs(directory.path()).expect("a file system").f_type;
    assert!(kind != TMPFS, "{} is in memory: let TMPDIR name a disk", std::env::temp_dir().display());

    if std::env::var_os("PINTLE_ETCD").is_none() {
        return println!("{}", WRITERS.map(|writers| alone(&embedded, &runtime, writers)).join("\n"));
    }
    let cluster = Etcd::launch(EtcdConfig::current().expect("PINTLE_ETCD")).expect("etcd");
    let options = EtcdOptions::new([cluster.urls()], "/registry");
    let storage = runtime.block_on(EtcdStorage::open(options)).expect("a connection to etcd");
    let pid = cluster.member(0).expect("a member").pid();
    let etcd = Engine::new("etcd", Arc::new(storage), pid);

    println!("| writers | engine | creates/s | p50 | p99 | CPU a create (with etcd's) |");
    println!("|---|---|---|---|---|---|");
    for writers in WRITERS {
        let engines = [&embedded, &etcd];
        for engine in engines {
            engine.measure(&runtime, writers, WARM_UP);
        }
        let mut outcomes = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (engine, outcomes) in engines.iter().zip(&mut outcomes) {
                outcomes.push(engine.measure(&runtime, writers, ROUND));
            }
        }
        let [embedded, etcd] = outcomes.map(median);
        for (engine, outcome) in engines.iter().zip([&embedded, &etcd]) {
            println!("| {writers} | {} | {} |", engine.name, outcome.row());
        }
        println!("| {writers} | ratio | {:.1} | | | |", embedded.rate() / etcd.rate());
    }
}

/// Measures the embedded engine alone, for profiling.
fn alone(embedded: &Engine, runtime: &Runtime, writers: usize) -> String {
    let outcomes = (0..ROUNDS).map(|_| embedded.measure(runtime, writers, ROUND)).collect();
    format!("| {writers} | embedded | {} |", median(outcomes).row())
}

/// An engine, and the process whose CPU time counts besides this one's.
struct Engine {
    name: &'static str,
    storage: Arc<dyn Storage>,
    server: Option<u32>,
    next: Arc<AtomicU64>,
}

impl Engine {
    fn new(name: &'static str, storage: Arc<dyn Storage>, server: Option<u32>) -> Engine {
        Engine { name, storage, server, next: Arc::default() }
    }

    /// Runs `writers` tasks; each repeatedly creates a key and waits until it is durable.
    fn measure(&self, runtime: &Runtime, writers: usize, time: Duration) -> Outcome {
        let pods = Arc::new(Pods::new());
        let cpu = self.cpu();
        let started = Instant::now();
        let tasks: Vec<_> = (0..writers)
            .map(|_| {
                let (storage, next, pods) =
                    (Arc::clone(&self.storage), Arc::clone(&self.next), Arc::clone(&pods));
                runtime.spawn(async move {
                    let mut latencies = Vec::new();
                    while started.elapsed() < time {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let key = Key::new(format!("/registry/pods/default/pod-{number:09}"));
                        let pod = pods.pod(number);
                        let begun = Instant::now();
                        storage.create(&key, pod.into(), None).await.expect("a create");
                        latencies.push(begun.elapsed());
                    }
                    latencies
                })
            })
            .collect();
        let mut latencies: Vec<Duration> =
            tasks.into_iter().flat_map(|task| runtime.block_on(task).expect("a writer")).collect();
        let wall = started.elapsed();
        latencies.sort_unstable();
        Outcome {
            writes: latencies.len(),
            wall,
            median: percentile(&latencies, 50),
            slow: percentile(&latencies, 99),
            cpu: self.cpu().saturating_sub(cpu),
        }
    }

    fn cpu(&self) -> Duration {
        let own = clock_gettime(ClockId::ProcessCPUTime);
        let own = Duration::new(own.tv_sec.unsigned_abs(), u32::try_from(own.tv_nsec).unwrap_or_default());
        own + self.server.map_or(Duration::ZERO, server_cpu)
    }
}

/// The user and system time of a process; the kernel counts in hundredths of a second.
fn server_cpu(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the server runs");
    let (_, fields) = stat.rsplit_once(") ").expect("a command in parentheses");
    let ticks: u64 =
        fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("ticks")).sum();
    Duration::from_millis(ticks * 10)
}

struct Outcome {
    writes: usize,
    wall: Duration,
    median: Duration,
    slow: Duration,
    cpu: Duration,
}

impl Outcome {
    fn rate(&self) -> f64 {
        self.writes as f64 / self.wall.as_secs_f64()
    }

    fn row(&self) -> String {
        let microseconds = self.cpu.as_secs_f64() * 1e6 / self.writes as f64;
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        format!(
            "{:.0} | {:.2} ms | {:.2} ms | {microseconds:.0} us",
            self.rate(),
            milliseconds(self.median),
            milliseconds(self.slow)
        )
    }
}

fn median(mut outcomes: Vec<Outcome>) -> Outcome {
    outcomes.sort_by(|one, other| one.rate().total_cmp(&other.rate()));
    outcomes.swap_remove(outcomes.len() / 2)
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let at = sorted.len().saturating_sub(1) * percent / 100;
    sorted.get(at).copied().unwrap_or_default()
}
