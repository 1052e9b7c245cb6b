//! Measures embedded stores on what an API server does to its store.
//!
//! ```text
//! storage-engines <engine> <directory> [writers] [objects]
//! ```
//!
//! Each writer hands over an object of 3 KB and waits until it is durable. One thread takes everything that waits,
//! writes it as one transaction, syncs once and answers. A write is two rows under its revision: a small one with what
//! the index needs at start, and the value. Then all but the newest 20,000 revisions are deleted in chunks (the
//! compaction), and the store is opened again by a new process, which reads the small rows and some values.

mod engines;

use engines::open;
use std::{
    env, fs,
    io::Write,
    path::Path,
    process::Command,
    sync::{Arc, Condvar, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

const VALUE: usize = 3_000;
const KEPT: u64 = 20_000;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [engine, directory, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: storage-engines <engine> <directory> [writers] [objects]");
        std::process::exit(2);
    };
    let number = |index: usize, default| rest.get(index).map_or(default, |n| n.parse().expect("a number"));
    let (writers, objects) = (number(0, 16), number(1, 60_000) / number(0, 16) * number(0, 16));
    let path = Path::new(directory);
    match rest.get(2).map(String::as_str) {
        Some("write") => return write(engine, path, writers, objects),
        Some(_) => return reopen(engine, path, objects + 1),
        None => {}
    }

    let _ = fs::remove_dir_all(path);
    fs::create_dir_all(path).expect("the directory");
    let steps: &[&str] =
        if engine == "log" { &["write"] } else { &["write", "after a crash", "after a close"] };
    for step in steps {
        print!("{engine:<12} {writers:>2} writers, {step:<13}");
        std::io::stdout().flush().expect("flush");
        let program = env::current_exe().expect("this program");
        let numbers = [writers.to_string(), objects.to_string()];
        let status = Command::new(program).args([engine, directory]).args(numbers).arg(step).status();
        assert!(status.expect("run again").success());
        println!();
    }
}

struct Job {
    value: Vec<u8>,
    done: mpsc::SyncSender<()>,
}

#[derive(Default)]
struct Queue {
    jobs: Mutex<(Vec<Job>, bool)>,
    ready: Condvar,
}

fn write(engine: &str, directory: &Path, writers: u64, objects: u64) {
    let mut store = open(engine, directory);
    let queue = Arc::new(Queue::default());
    let (cpu, started) = (cpu_time(), Instant::now());
    let threads: Vec<_> = (0..writers)
        .map(|writer| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || writer_loop(&queue, writer, objects / writers))
        })
        .collect();
    let committer = {
        let queue = Arc::clone(&queue);
        thread::spawn(move || {
            let mut revision = 1;
            let mut batches = 0_u64;
            loop {
                let mut guard = queue.jobs.lock().expect("queue");
                while guard.0.is_empty() && !guard.1 {
                    guard = queue.ready.wait(guard).expect("queue");
                }
                let jobs = std::mem::take(&mut guard.0);
                drop(guard);
                if jobs.is_empty() {
                    return (store, revision, batches);
                }
                let rows: Vec<(u64, Vec<u8>, &[u8])> = jobs
                    .iter()
                    .map(|job| {
                        revision += 1;
                        (
                            revision,
                            format!("/registry/pods/default/pod-{revision:08}").into_bytes(),
                            &*job.value,
                        )
                    })
                    .collect();
                store.commit(&rows);
                batches += 1;
                drop(rows);
                for job in jobs {
                    let _ = job.done.send(());
                }
            }
        })
    };
    let mut latencies: Vec<Duration> = threads.into_iter().flat_map(|t| t.join().expect("writer")).collect();
    let (elapsed, cpu) = (started.elapsed(), cpu_time() - cpu);
    queue.jobs.lock().expect("queue").1 = true;
    queue.ready.notify_one();
    let (mut store, last, batches) = committer.join().expect("committer");
    latencies.sort();
    let count = latencies.len() as f64;
    print!(
        " | {:>6.0}/s {:>5.1} us CPU, batch {:>4.1}, p50 {:>4.0} p99 {:>5.0} max {:>6.0} us, {:>5.1} KB/object on disk, RSS {:>3} MB",
        count / elapsed.as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / count,
        count / batches as f64,
        latencies[latencies.len() / 2].as_secs_f64() * 1e6,
        latencies[latencies.len() * 99 / 100].as_secs_f64() * 1e6,
        latencies[latencies.len() - 1].as_secs_f64() * 1e6,
        size(directory) as f64 / count / 1024.0,
        resident(),
    );
    if engine == "log" {
        return;
    }
    let (cpu, started) = (cpu_time(), Instant::now());
    let first_kept = last.saturating_sub(KEPT) + 1;
    let mut from = 2;
    while from < first_kept {
        let to = (from + 1000).min(first_kept);
        store.delete(from, to);
        from = to;
    }
    // Time for what an engine does behind its caller's back, so that it is counted.
    thread::sleep(Duration::from_secs(2));
    print!(
        " | compaction {:>4.1} us CPU/row, {:>4.0} MB, {:>4.2} s",
        (cpu_time() - cpu).as_secs_f64() * 1e6 / (first_kept.max(3) - 2) as f64,
        size(directory) as f64 / 1e6,
        started.elapsed().as_secs_f64() - 2.0,
    );
    // As a killed process leaves it: nothing is flushed or closed.
    std::mem::forget(store);
}

fn writer_loop(queue: &Queue, writer: u64, objects: u64) -> Vec<Duration> {
    let mut random = writer + 1;
    // Half random, half not: about what JSON compresses to.
    let mut value = vec![b'x'; VALUE];
    let (sender, receiver) = mpsc::sync_channel(1);
    (0..objects)
        .map(|_| {
            for byte in value.iter_mut().step_by(16) {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                *byte = (random >> 33) as u8;
            }
            let started = Instant::now();
            let job = Job { value: value.clone(), done: sender.clone() };
            let mut guard = queue.jobs.lock().expect("queue");
            guard.0.push(job);
            if guard.0.len() == 1 {
                queue.ready.notify_one();
            }
            drop(guard);
            receiver.recv().expect("answer");
            started.elapsed()
        })
        .collect()
}

fn reopen(engine: &str, directory: &Path, last: u64) {
    let started = Instant::now();
    let store = open(engine, directory);
    let opened = started.elapsed();
    let rows = store.load();
    let loaded = started.elapsed();
    assert_eq!(rows as u64, KEPT, "rows");
    print!(
        " | open {:>4.1} + index {:>4.1} ms, RSS {:>3} MB",
        opened.as_secs_f64() * 1e3,
        (loaded - opened).as_secs_f64() * 1e3,
        resident()
    );
    let first = last - KEPT + 1;
    let started = Instant::now();
    let mut random = 1_u64;
    for _ in 0..20_000 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        assert_eq!(store.get(&[first + (random >> 33) % KEPT]), VALUE);
    }
    print!(" | get {:>4.1} us", started.elapsed().as_secs_f64() * 1e6 / 20_000.0);
    let started = Instant::now();
    let revisions: Vec<u64> = (first..first + 5_000).collect();
    assert_eq!(store.get(&revisions), 5_000 * VALUE);
    print!(", list of 5,000 {:>4.1} ms, RSS {:>3} MB", started.elapsed().as_secs_f64() * 1e3, resident());
}

/// User and system time of this process.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("stat");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().expect("utime") + fields[12].parse::<u64>().expect("stime");
    Duration::from_millis(ticks * 10)
}

/// Megabytes of memory this process occupies.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("VmRSS");
    line.split_whitespace().nth(1).expect("a number").parse::<u64>().expect("a number") / 1024
}

fn size(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = fs::read_dir(directory).expect("the directory");
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size(&entry.path()),
            Ok(metadata) => metadata.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}
