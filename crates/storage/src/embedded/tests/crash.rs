//! `kill -9` under load: this test runs itself as a child that writes and reports what was acknowledged, kills it, and
//! looks at what it left.

use super::*;
use crate::{EventKind, StorageEvent};
use std::{
    collections::HashMap,
    env,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::Instant,
};

const DIRECTORY: &str = "PINTLE_STORAGE_CRASH_DIRECTORY";
const NAME: &str = "embedded::tests::crash::acknowledged_writes_survive_kill_9";
const WRITERS: usize = 8;
const ROUNDS: u32 = 6;

#[test]
fn acknowledged_writes_survive_kill_9() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        return write_until_killed(Path::new(&directory));
    }
    let factory = Embedded::new();
    let mut newest = Revision(1);
    let mut written = 0;
    for round in 0..ROUNDS {
        let acknowledged = kill_after(factory.0.path(), Duration::from_millis(30 + u64::from(round) * 37));
        written += acknowledged.len();
        newest = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
            .block_on(check(factory.0.path(), &acknowledged, newest));
    }
    assert!(written > 100, "only {written} writes in {ROUNDS} rounds");
}

/// What a child printed: writer, number, revision.
type Acknowledged = Vec<(usize, u64, Revision)>;

/// Runs a child, kills it so long after its first write was acknowledged.
fn kill_after(directory: &Path, time: Duration) -> Acknowledged {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([NAME, "--exact", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut acknowledged = Vec::new();
    let mut first = None;
    let mut line = String::new();
    let mut killed = false;
    // What is in the pipe when the child dies was acknowledged too.
    while lines.read_line(&mut line).unwrap() != 0 {
        if let Some(words) = line.strip_prefix("ack ").and_then(|rest| rest.strip_suffix('\n')) {
            let numbers: Vec<u64> = words.split(' ').map(|word| word.parse().unwrap()).collect();
            let [writer, number, revision] = *numbers else { panic!("{line}") };
            acknowledged.push((writer as usize, number, Revision(revision)));
        }
        line.clear();
        let started = *first.get_or_insert_with(Instant::now);
        if !killed && !acknowledged.is_empty() && started.elapsed() >= time {
            child.kill().unwrap();
            killed = true;
        }
    }
    assert!(killed, "the child ended by itself: {}", child.wait().unwrap());
    child.wait().unwrap();
    acknowledged
}

/// The child: writers that create, update and delete their keys, one of them also compacts.
fn write_until_killed(directory: &Path) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        // Checkpoints as often as not, so that kills hit them as well.
        let options = EmbeddedOptions { log_bytes: 256 << 10, ..EmbeddedOptions::default() };
        let storage = Arc::new(EmbeddedStorage::open(directory, options).unwrap());
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| tokio::spawn(write_on(Arc::clone(&storage), writer))).collect();
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

/// Goes through the numbers: every third is a delete of the key, the next creates it again.
async fn write_on(storage: Arc<EmbeddedStorage>, writer: usize) {
    let key = Key::new(format!("/r/{writer}"));
    let counter = Key::new(format!("/counter/{writer}"));
    let mut current = storage.get(&key).await.unwrap().kv.map(|kv| kv.mod_revision);
    // A counter of its own, written before, tells how far an earlier child came.
    let (mut number, mut counted) = match storage.get(&counter).await.unwrap().kv {
        Some(kv) => (std::str::from_utf8(&kv.value).unwrap().parse().unwrap(), kv.mod_revision),
        None => (0, storage.create(&counter, Bytes::from_static(b"0"), None).await.unwrap()),
    };
    loop {
        number += 1;
        counted = storage.update(&counter, Bytes::from(number.to_string()), counted, None).await.unwrap();
        let mut value = format!("{number} ").into_bytes();
        value.resize(3_000, b'x');
        let value = Bytes::from(value);
        let revision = match current {
            None => storage.create(&key, value, None).await.unwrap(),
            Some(expected) if number % 3 == 0 => storage.delete(&key, expected).await.unwrap(),
            Some(expected) => storage.update(&key, value, expected, None).await.unwrap(),
        };
        let deleted = current.is_some() && number % 3 == 0;
        current = (!deleted).then_some(revision);
        // One write, so that lines of writers do not mix.
        let line = format!("ack {writer} {number} {revision}\n");
        std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes()).unwrap();
        if writer == 0 && number % 50 == 0 {
            storage.compact(Revision(revision.0.saturating_sub(100))).await.unwrap();
        }
    }
}

/// Every acknowledged write is in history where it was acknowledged (or compacted away), history has no hole, and the
/// newest state is what history says.
async fn check(directory: &Path, acknowledged: &Acknowledged, before: Revision) -> Revision {
    let storage = open(directory);
    let newest = storage.current_revision().await.unwrap();
    let last = acknowledged.iter().map(|(.., revision)| *revision).max().unwrap();
    assert!(newest >= last && newest >= before, "{newest}, but {last} was acknowledged and {before} seen");

    let compacted = storage.shared.state.read().compacted;
    let request = WatchRequest { prefix: String::new(), after: compacted };
    let mut stream = storage.watch(request).await.unwrap();
    storage.request_progress().await.unwrap();
    let mut history = HashMap::new();
    let mut state: HashMap<Key, Revision> = HashMap::new();
    let at_compaction = ListRequest { revision: Some(compacted), ..list_all() };
    for kv in storage.get_list(at_compaction).await.unwrap().items {
        state.insert(kv.key, kv.mod_revision);
    }
    // The first write of all has revision 2.
    let mut reached = compacted.max(Revision(1));
    'events: loop {
        for event in stream.next_batch().await.unwrap() {
            match event {
                StorageEvent::Write { kind, revision, kv } => {
                    assert_eq!(revision.0, reached.0 + 1, "a hole in history");
                    reached = revision;
                    match kind {
                        EventKind::Delete => state.remove(&kv.key),
                        EventKind::Create | EventKind::Update => state.insert(kv.key.clone(), revision),
                    };
                    history.insert(revision, (kind, kv));
                }
                StorageEvent::Progress(_) => break 'events,
                StorageEvent::Error(error) => panic!("{error}"),
            }
        }
    }
    assert_eq!(reached, newest, "history ends before the newest revision");

    for (writer, number, revision) in acknowledged.iter().filter(|(.., revision)| *revision > compacted) {
        let Some((kind, kv)) = history.get(revision) else { panic!("{revision} is lost") };
        assert_eq!(kv.key.as_str(), format!("/r/{writer}"), "at {revision}");
        if *kind != EventKind::Delete {
            assert!(kv.value.starts_with(format!("{number} ").as_bytes()), "at {revision}");
            assert_eq!(kv.value.len(), 3_000, "at {revision}");
        }
    }
    let items = storage.get_list(list_all()).await.unwrap().items;
    let items: HashMap<Key, Revision> = items.into_iter().map(|kv| (kv.key, kv.mod_revision)).collect();
    assert_eq!(items, state);
    newest
}
