//! Generates load with a predictable result: counters, each incremented by many writers with compare-and-swap.
//!
//! Every value names its writer. The final check finds each write of the store's history among the attempted writes,
//! and each acknowledged write in the history. The lower bound of a read's result is the highest count that was
//! acknowledged before the read began.

use bytes::Bytes;
use pintle_cacher::{Cacher, CacherConfig, DecodeError, DecodedObject, Freshness, ObjectDecoder};
use pintle_harness::Error;
use pintle_storage::{EventKind, Key, Payload, Revision, Storage, StorageEvent, WatchRequest, WriteError};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

/// The number of counters.
const KEYS: usize = 5;
/// The time in which the watches have to see the last write.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time to live of every second counter, which has a lease for it.
const TIME_TO_LIVE: Duration = Duration::from_secs(3600);
/// The prefix of the counters.
pub const PREFIX: &str = "/registry/counters/";

/// A write, as its writer made it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Attempt {
    key: usize,
    count: u64,
    tag: String,
}

/// The writes and reads so far.
#[derive(Default)]
struct Ledger {
    acknowledged: Mutex<Vec<(Attempt, Revision)>>,
    /// Failed writes that may have happened or not.
    uncertain: Mutex<Vec<Attempt>>,
    /// The highest acknowledged count of each key.
    floors: [AtomicU64; KEYS],
    violations: Mutex<Vec<String>>,
    reads: AtomicU64,
    failures: AtomicU64,
    stop: AtomicBool,
}

/// The result of a load, for the test's output.
#[derive(Debug)]
pub struct Report {
    /// The number of acknowledged writes.
    pub acknowledged: usize,
    /// The number of failed writes that may have happened or not.
    pub uncertain: usize,
    /// The number of uncertain writes that happened.
    pub uncertain_but_written: usize,
    /// The number of successful reads.
    pub reads: u64,
    /// The number of failed calls.
    pub failures: u64,
}

/// A running load.
pub struct Load {
    ledger: Arc<Ledger>,
    storages: Vec<Arc<dyn Storage>>,
    cachers: Vec<Arc<Cacher>>,
    start: Revision,
    workers: Vec<JoinHandle<()>>,
    watches: Vec<JoinHandle<Vec<Event>>>,
    last: tokio::sync::watch::Sender<Option<Revision>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Event {
    revision: Revision,
    kind: EventKind,
    key: Key,
    value: Bytes,
}

impl Load {
    /// Starts writers, readers and watches on each of several engines of one store, to which no other program writes.
    ///
    /// # Errors
    /// When the counters cannot be created.
    pub async fn start(storages: Vec<Arc<dyn Storage>>) -> Result<Load, Error> {
        let first = storages.first().ok_or("no engine")?;
        let start = first.current_revision().await?;
        for number in 0..KEYS {
            first.create(&key(number), Bytes::from_static(b"0 start").into(), time_to_live(number)).await?;
        }
        let ledger = Arc::new(Ledger::default());
        let (last, _) = tokio::sync::watch::channel(None);
        let mut load = Load {
            ledger: ledger.clone(),
            cachers: Vec::new(),
            start,
            workers: Vec::new(),
            watches: Vec::new(),
            last,
            storages,
        };
        for (engine, storage) in load.storages.iter().enumerate() {
            let cacher = start_cacher(storage).await?;
            for writer in 0..4 {
                let name = format!("{engine}-{writer}");
                load.workers.push(tokio::spawn(write(ledger.clone(), storage.clone(), name)));
            }
            for _ in 0..2 {
                load.workers.push(tokio::spawn(read(ledger.clone(), cacher.clone())));
                load.watches.push(tokio::spawn(watch(storage.clone(), start, load.last.subscribe())));
            }
            load.cachers.push(cacher);
        }
        Ok(load)
    }

    /// Waits until this number of further writes was acknowledged.
    ///
    /// # Errors
    /// When they are not acknowledged in time.
    pub async fn progress(&self, writes: usize) -> Result<(), Error> {
        let count = || lock(&self.ledger.acknowledged).len();
        let goal = count() + writes;
        let reached = async {
            while count() < goal {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = timeout(PATIENCE, reached).await;
        waited.map_err(|_| format!("only {} of {goal} writes were acknowledged", count()).into())
    }

    /// Ends the load and checks everything.
    ///
    /// # Errors
    /// The first violation that was found.
    pub async fn finish(self) -> Result<Report, Error> {
        self.ledger.stop.store(true, Ordering::Release);
        for worker in self.workers {
            worker.await?;
        }
        let storage = self.storages.first().ok_or("no engine")?;
        let last = timeout(PATIENCE, async {
            loop {
                // A write whose call has failed may still happen for a moment.
                if let Ok(last) = storage.current_revision().await {
                    sleep(Duration::from_millis(300)).await;
                    if storage.current_revision().await.is_ok_and(|now| now == last) {
                        return last;
                    }
                }
            }
        });
        let last = last.await.map_err(|_| "the store does not come to rest")?;
        self.last.send_replace(Some(last));
        let mut histories = Vec::new();
        for watch in self.watches {
            histories.push(timeout(PATIENCE, watch).await.map_err(|_| "a watch does not reach the end")??);
        }
        let history = histories.first().ok_or("no watch")?;
        for (number, other) in histories.iter().enumerate() {
            if other != history {
                return Err(format!("watch {number} has seen another history").into());
            }
        }
        let report = check(&self.ledger, history, self.start, last)?;
        let mut state = BTreeMap::new();
        for event in history {
            state.insert(event.key.clone(), event.value.clone());
        }
        for cacher in &self.cachers {
            let snapshot = cacher.snapshot(Freshness::Consistent).await?;
            let cached: BTreeMap<_, _> = snapshot
                .range(PREFIX, None)
                .map(|object| (object.key().clone(), object.json().clone()))
                .collect();
            if cached != state {
                return Err(format!("the cache has {cached:?}, the history ends with {state:?}").into());
            }
            cacher.stop();
        }
        Ok(report)
    }
}

/// Compares the history with the writes in the ledger.
fn check(ledger: &Ledger, history: &[Event], start: Revision, last: Revision) -> Result<Report, Error> {
    let violations = lock(&ledger.violations);
    if let Some(first) = violations.first() {
        return Err(format!("{} violations, the first one: {first}", violations.len()).into());
    }
    let revisions: Vec<u64> = history.iter().map(|event| event.revision.0).collect();
    if revisions != (start.0 + 1..=last.0).collect::<Vec<_>>() {
        return Err(format!("a gap or a double between {start} and {last}: {revisions:?}").into());
    }
    let mut counts = [0; KEYS];
    let mut written = HashMap::new();
    for event in history {
        let (number, count, tag) = parse(&event.key, &event.value)?;
        if tag == "start" {
            continue;
        }
        let before = counts.get_mut(number).ok_or("no such counter")?;
        if count != *before + 1 {
            return Err(
                format!("counter {number} went from {before} to {count} at {}", event.revision).into()
            );
        }
        *before = count;
        if written.insert(tag.clone(), (Attempt { key: number, count, tag }, event.revision)).is_some() {
            return Err(format!("a write happened twice, again at {}", event.revision).into());
        }
    }
    let acknowledged = lock(&ledger.acknowledged);
    for (attempt, revision) in acknowledged.iter() {
        let found = written.remove(&attempt.tag);
        if found.as_ref() != Some(&(attempt.clone(), *revision)) {
            return Err(format!("acknowledged {attempt:?} at {revision}, but there is {found:?}").into());
        }
    }
    let uncertain = lock(&ledger.uncertain);
    let mut uncertain_but_written = 0;
    for attempt in uncertain.iter() {
        uncertain_but_written += usize::from(written.remove(&attempt.tag).is_some());
    }
    if let Some(unknown) = written.values().next() {
        return Err(format!("{unknown:?} was written, but its writer was told that it was not").into());
    }
    Ok(Report {
        acknowledged: acknowledged.len(),
        uncertain: uncertain.len(),
        uncertain_but_written,
        reads: ledger.reads.load(Ordering::Relaxed),
        failures: ledger.failures.load(Ordering::Relaxed),
    })
}

/// Increments counters, one after the other.
async fn write(ledger: Arc<Ledger>, storage: Arc<dyn Storage>, name: String) {
    for round in 0.. {
        if ledger.stop.load(Ordering::Acquire) {
            return;
        }
        let number = round % KEYS;
        let floor = ledger.floor(number);
        let Ok(response) = storage.get(&key(number)).await else {
            ledger.failed().await;
            continue;
        };
        let Some(kv) = response.kv else {
            ledger.violation(format!("counter {number} is gone"));
            return;
        };
        ledger.check_read("a get", number, &kv.value, floor);
        let Ok((_, count, _)) = parse(&kv.key, &kv.value) else { return };
        let attempt = Attempt { key: number, count: count + 1, tag: format!("{name}-{round}") };
        let value = Bytes::from(format!("{} {}", attempt.count, attempt.tag));
        match storage.update(&kv.key, value.clone().into(), kv.mod_revision, time_to_live(number)).await {
            Ok(revision) => {
                lock(&ledger.acknowledged).push((attempt.clone(), revision));
                if let Some(floor) = ledger.floors.get(number) {
                    floor.fetch_max(attempt.count, Ordering::AcqRel);
                }
            }
            Err(WriteError::Conflict { current }) => {
                if current.is_some_and(|current| current.value.bytes == value) {
                    ledger.violation(format!("{attempt:?} was refused although it was written"));
                }
            }
            Err(_) => {
                lock(&ledger.uncertain).push(attempt);
                ledger.failed().await;
            }
        }
    }
}

/// Makes consistent reads of a counter from a cache.
async fn read(ledger: Arc<Ledger>, cacher: Arc<Cacher>) {
    for round in 0.. {
        if ledger.stop.load(Ordering::Acquire) {
            return;
        }
        let number = round % KEYS;
        let floor = ledger.floor(number);
        match cacher.snapshot(Freshness::Consistent).await {
            Err(_) => ledger.failed().await,
            Ok(snapshot) => match snapshot.get(&key(number)) {
                Some(object) => ledger.check_read("a consistent read", number, &object.json(), floor),
                None => ledger.violation(format!("a consistent read does not find counter {number}")),
            },
        }
        sleep(Duration::from_millis(1)).await;
    }
}

/// Watches all writes; when the watch ends, resumes after the last event.
async fn watch(
    storage: Arc<dyn Storage>,
    start: Revision,
    last: tokio::sync::watch::Receiver<Option<Revision>>,
) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let after = events.last().map_or(start, |event| event.revision);
        let request = WatchRequest { prefix: PREFIX.to_owned(), after };
        let Ok(mut stream) = storage.watch(request).await else {
            sleep(Duration::from_millis(20)).await;
            continue;
        };
        loop {
            let reached = events.last().map_or(start, |event| event.revision);
            if last.borrow().is_some_and(|last| reached >= last) {
                return events;
            }
            // The timeout is needed to detect the end of the load when no event comes.
            let Ok(batch) = timeout(Duration::from_secs(1), stream.next_batch()).await else { continue };
            let Some(batch) = batch else { break };
            for event in batch {
                if let StorageEvent::Write { kind, revision, kv } = event {
                    events.push(Event { revision, kind, key: kv.key, value: kv.value.bytes });
                }
            }
        }
    }
}

impl Ledger {
    fn floor(&self, number: usize) -> u64 {
        self.floors.get(number).map_or(0, |floor| floor.load(Ordering::Acquire))
    }

    fn check_read(&self, what: &str, number: usize, value: &[u8], floor: u64) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        match parse(&key(number), value) {
            Ok((_, count, _)) if count >= floor => {}
            Ok((_, count, _)) => self.violation(format!(
                "{what} shows {count} of counter {number}, though {floor} was acknowledged before it began"
            )),
            Err(error) => self.violation(format!("{what} of counter {number}: {error}")),
        }
    }

    fn violation(&self, what: String) {
        lock(&self.violations).push(what);
    }

    /// Counts a failed call, and pauses before the next one.
    async fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        sleep(Duration::from_millis(10)).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A worker that panicked fails the test by itself.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn time_to_live(number: usize) -> Option<Duration> {
    (number % 2 == 1).then_some(TIME_TO_LIVE)
}

fn key(number: usize) -> Key {
    Key::new(format!("{PREFIX}{number}"))
}

/// The counter's number, its count and the writer of that count.
fn parse(key: &Key, value: &[u8]) -> Result<(usize, u64, String), Error> {
    let number = key.as_str().strip_prefix(PREFIX).ok_or("a key of somebody else")?.parse()?;
    let text = std::str::from_utf8(value)?;
    let (count, tag) = text.split_once(' ').ok_or("no count")?;
    Ok((number, count.parse()?, tag.to_owned()))
}

/// A ready cacher of the keys below [`PREFIX`].
///
/// # Errors
/// When it does not become ready.
pub async fn start_cacher(storage: &Arc<dyn Storage>) -> Result<Arc<Cacher>, Error> {
    let config = CacherConfig::new("counters", PREFIX, Arc::new(Decoder));
    let cacher = Cacher::start(storage.clone(), config, &pintle_supervisor::Supervisor::current());
    cacher.wait_ready().await?;
    Ok(cacher)
}

/// Decodes values, which are complete objects.
struct Decoder;

impl ObjectDecoder for Decoder {
    fn decode(&self, key: &Key, value: &Payload, _: Revision) -> Result<DecodedObject, DecodeError> {
        Ok(DecodedObject {
            json: value.bytes.clone(),
            packed: None,
            namespace: "".into(),
            name: key.as_str().into(),
            selectable: Arc::default(),
        })
    }

    fn rewrite_revision(&self, json: &Bytes, _: Revision) -> Bytes {
        json.clone()
    }
}
