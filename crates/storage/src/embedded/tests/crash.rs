//! Tests `kill -9` under load: this test runs itself as a child that writes and reports its acknowledged writes and
//! the events of a watch, kills it, and checks the store. It repeats that on the same store.
//!
//! `PINTLE_CRASH_KILLS` is the number of kills; `cargo xtask crash` makes more than a test run.

use super::{
    history::{History, value},
    *,
};
use crate::{EventKind, StorageEvent};
use pintle_fault_vfs::Random;
use std::{
    env,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

const DIRECTORY: &str = "PINTLE_STORAGE_CRASH_DIRECTORY";
/// The child compacts up to this revision and no further: the parent resumes its watch from it.
const RESUME: &str = "PINTLE_STORAGE_CRASH_RESUME";
const NAME: &str = "embedded::tests::crash::acknowledged_writes_survive_kill_9";
const WRITERS: u64 = 8;
const SIZE: usize = 1_500;

fn kills() -> u64 {
    env::var("PINTLE_CRASH_KILLS").map_or(200, |kills| kills.parse().unwrap())
}

#[test]
fn acknowledged_writes_survive_kill_9() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        let resume = env::var(RESUME).unwrap().parse().unwrap();
        return write_until_killed(Path::new(&directory), resume);
    }
    let factory = Embedded::fast();
    let mut history = History::default();
    let mut random = Random::new(9);
    let (mut written, mut seen, mut others, mut compactions) = (0, 0, 0, 0);
    for round in 0..kills() {
        let writes = 1 + random.below(200) as usize;
        let child = kill_after(factory.0.path(), history.newest(), writes);
        written += child.acknowledged.len();
        seen += child.seen.len();
        let before = history.newest();
        let compacted = runtime(1).block_on(check(factory.0.path(), &child, &mut history, round));
        others += (history.newest().0 - before.0) as usize - child.acknowledged.len();
        compactions += usize::from(compacted);
    }
    eprintln!("{} kills, {written} writes told of, {others} others, {seen} events seen", kills());
    assert!(written as u64 > kills() * 20 && seen as u64 > kills() * 10, "{written} writes, {seen} events");
    assert!(compactions as u64 > kills() / 4, "compacted in {compactions} rounds of {}", kills());
}

fn runtime(threads: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_time().build().unwrap()
}

/// The child's output.
#[derive(Default)]
struct Told {
    acknowledged: Vec<Acknowledged>,
    /// The revisions, and checksums of the values, of the events of the child's watch.
    seen: Vec<(Revision, u32)>,
}

struct Acknowledged {
    writer: u64,
    number: u64,
    revision: Revision,
}

/// Runs a child, and kills it when this many writes were acknowledged, whatever time that takes; more are by then.
fn kill_after(directory: &Path, resume: Revision, writes: usize) -> Told {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([NAME, "--exact", "--nocapture"])
        .env(DIRECTORY, directory)
        .env(RESUME, resume.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut told = Told::default();
    let mut line = String::new();
    let mut killed = false;
    // Lines in the pipe when the child dies were acknowledged, too.
    while lines.read_line(&mut line).unwrap() != 0 {
        let words: Vec<&str> = line.split_whitespace().collect();
        // A truncated last line is ignored.
        match *words {
            ["ack", writer, number, revision, "."] => told.acknowledged.push(Acknowledged {
                writer: writer.parse().unwrap(),
                number: number.parse().unwrap(),
                revision: Revision(revision.parse().unwrap()),
            }),
            ["saw", revision, crc, "."] => {
                told.seen.push((Revision(revision.parse().unwrap()), crc.parse().unwrap()));
            }
            _ => {}
        }
        line.clear();
        if !killed && told.acknowledged.len() >= writes {
            child.kill().unwrap();
            killed = true;
        }
    }
    assert!(killed, "the child ended by itself: {}", child.wait().unwrap());
    child.wait().unwrap();
    told
}

/// One write to the pipe per line, so that lines do not mix.
fn tell(line: &str) {
    std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes()).unwrap();
}

/// The child: writers that create, update and delete their keys, a watch, and compactions.
fn write_until_killed(directory: &Path, resume: u64) {
    runtime(2).block_on(async {
        // Frequent checkpoints, so that kills hit them, too.
        let options = EmbeddedOptions { wal_bytes: 256 << 10, ..EmbeddedOptions::default() };
        let storage = Arc::new(EmbeddedStorage::open(directory, options).unwrap());
        tokio::spawn(watch(Arc::clone(&storage)));
        tokio::spawn(compact(Arc::clone(&storage), resume));
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| tokio::spawn(write(Arc::clone(&storage), writer))).collect();
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

async fn watch(storage: Arc<EmbeddedStorage>) {
    let after = storage.current_revision().await.unwrap();
    let mut stream = storage.watch(WatchRequest { prefix: String::new(), after }).await.unwrap();
    while let Some(events) = stream.next_batch().await {
        for event in events {
            if let StorageEvent::Write { revision, kv, .. } = event {
                tell(&format!("saw {revision} {} .\n", crc32fast::hash(&kv.value)));
            }
        }
    }
}

/// In steps, so that a kill is likely to hit a compaction.
async fn compact(storage: Arc<EmbeddedStorage>, resume: u64) {
    let mut at = storage.shared.state.read().compacted.0;
    while at < resume {
        at = (at + 100).min(resume);
        storage.compact(Revision(at)).await.unwrap();
    }
}

/// Counts up: every third number deletes the key, the next one creates it again; every seventh also writes a key that
/// expires.
async fn write(storage: Arc<EmbeddedStorage>, writer: u64) {
    let key = Key::new(format!("/r/{writer}"));
    let counter = Key::new(format!("/counter/{writer}"));
    let mut current = storage.get(&key).await.unwrap().kv.map(|kv| kv.mod_revision);
    // A counter in the store, which is written first, has the number that an earlier child reached.
    let (mut number, mut counted) = match storage.get(&counter).await.unwrap().kv {
        Some(kv) => (std::str::from_utf8(&kv.value).unwrap().parse().unwrap(), kv.mod_revision),
        None => (0, storage.create(&counter, Bytes::from_static(b"0").into(), None).await.unwrap()),
    };
    loop {
        number += 1;
        counted =
            storage.update(&counter, Bytes::from(number.to_string()).into(), counted, None).await.unwrap();
        let written = value(writer, number, SIZE);
        let revision = match current {
            None => storage.create(&key, written.into(), None).await.unwrap(),
            Some(expected) if number % 3 == 0 => storage.delete(&key, expected).await.unwrap(),
            Some(expected) => storage.update(&key, written.into(), expected, None).await.unwrap(),
        };
        let deleted = current.is_some() && number % 3 == 0;
        current = (!deleted).then_some(revision);
        tell(&format!("ack {writer} {number} {revision} .\n"));
        if number % 7 == 0 {
            for (prefix, milliseconds) in [("/short", 20), ("/long", 3_600_000)] {
                let name = Key::new(format!("{prefix}/{writer}-{number}"));
                let ttl = Some(Duration::from_millis(milliseconds));
                storage.create(&name, Bytes::from_static(b"for a while").into(), ttl).await.unwrap();
            }
        }
    }
}

/// Checks a store after a kill. A watch that resumes gets all later events without a gap; they include every
/// acknowledged write and every event seen, unchanged; lists at old revisions and the latest state match the history;
/// expiring keys expire. Returns whether the store was compacted since the last check.
async fn check(directory: &Path, child: &Told, history: &mut History, round: u64) -> bool {
    let storage = open(directory);
    let resumed = history.newest();
    history.resume(&storage).await;
    let what = format!("after kill {round}");
    for Acknowledged { writer, number, revision } in &child.acknowledged {
        assert!(*revision > resumed, "{what}: {revision} was given twice");
        let Some((kind, kv)) = history.events.get(revision) else { panic!("{what}: {revision} is lost") };
        assert_eq!(kv.key.as_str(), format!("/r/{writer}"), "{what}: at {revision}");
        if *kind != EventKind::Delete {
            assert!(kv.value == value(*writer, *number, SIZE).into(), "{what}: at {revision}");
        }
    }
    for (revision, crc) in &child.seen {
        let Some((_, kv)) = history.events.get(revision) else {
            panic!("{what}: {revision} was seen and is lost")
        };
        assert_eq!(crc32fast::hash(&kv.value), *crc, "{what}: at {revision}");
    }
    let seen = child.seen.iter().map(|(revision, _)| revision.0);
    assert!(seen.clone().is_sorted_by(|a, b| a + 1 == *b), "{what}: a watch saw a hole or something twice");

    while !storage
        .get_list(ListRequest { prefix: "/short/".to_owned(), ..list_all() })
        .await
        .unwrap()
        .items
        .is_empty()
    {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    history.resume(&storage).await;
    history.check(&storage, resumed, &what).await;
    let long = ListRequest { prefix: "/long/".to_owned(), ..list_all() };
    let long = storage.get_list(long).await.unwrap().items;
    assert_eq!(long.len(), history.alive("/long/"), "{what}");
    // Otherwise their number would grow from round to round.
    for kv in long.iter().rev().skip(20) {
        storage.delete(&kv.key, kv.mod_revision).await.unwrap();
    }
    history.resume(&storage).await;
    let compacted = history.forget(storage.shared.state.read().compacted);
    // The store is closed only sometimes: otherwise the parent's own writes are in the WAL as well.
    if round.is_multiple_of(3) {
        storage.close().await.unwrap();
    }
    compacted
}
