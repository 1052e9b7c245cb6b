//! What a power cut leaves: the files as they were synced last, and of what was written after that any part, in any
//! order, or something else in its place.

use super::*;
use proptest::prelude::*;

/// How the end of the log may look.
#[derive(Debug, Clone, Copy)]
enum Tail {
    /// It was never made longer.
    Missing,
    /// It was made longer, but nothing was written.
    Zeros,
    /// Something was written.
    Noise(u8),
    /// The later sectors were written, the first was not.
    WithoutFirstSector,
}

/// The store after each acknowledged write: its revision, and how long the log was.
struct Run {
    database: Vec<u8>,
    acknowledged: Vec<(Revision, u64)>,
    log: Vec<u8>,
}

/// Writes one after the other, and keeps the files as they are then, with the whole log.
fn run() -> Run {
    let factory = Embedded::new();
    let log = file::log_path(factory.0.path());
    let storage = open(factory.0.path());
    let mut acknowledged = vec![(Revision(1), log.metadata().unwrap().len())];
    block_on(async {
        for number in 0..40 {
            let revision = create(&storage, &format!("/r/{number:02}"), 100 + number * 300).await.unwrap();
            acknowledged.push((revision, log.metadata().unwrap().len()));
        }
    });
    // Before the store is closed, which copies the log into the database.
    let database = fs::read(file::database_path(factory.0.path())).unwrap();
    let log = fs::read(log).unwrap();
    Run { database, acknowledged, log }
}

/// A copy of the store whose log is synced up to `synced`, with such a tail after that.
fn cut(run: &Run, synced: u64, tail: Tail) -> Embedded {
    let copy = Embedded::new();
    let directory = copy.0.path();
    fs::write(file::database_path(directory), &run.database).unwrap();
    // Nothing is written before the transaction before it is synced, so only one can be there in part.
    let written = run.acknowledged.iter().map(|(_, length)| *length).find(|length| *length > synced);
    let (log, _) = run.log.split_at(written.unwrap_or(synced) as usize);
    let (kept, lost) = log.split_at(synced as usize);
    let mut log = kept.to_vec();
    match tail {
        Tail::Missing => {}
        Tail::Zeros => log.resize(kept.len() + lost.len(), 0),
        Tail::Noise(byte) => log.extend(lost.iter().map(|there| there.wrapping_add(byte | 1))),
        Tail::WithoutFirstSector => {
            log.resize(log.len() + lost.len().min(512), 0);
            log.extend(lost.iter().skip(512));
        }
    }
    fs::write(file::log_path(directory), log).unwrap();
    copy
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// Everything that was acknowledged when `synced` bytes were is there, whole; the revisions go on.
async fn check(run: &Run, directory: &Path, synced: u64) {
    let last = run.acknowledged.iter().filter(|(_, length)| *length <= synced).map(|(revision, _)| *revision);
    let last = last.max().unwrap();
    let storage = open(directory);
    let newest = storage.current_revision().await.unwrap();
    assert!(newest >= last, "{last} was acknowledged, the newest is {newest}");
    let items = storage.get_list(list_all()).await.unwrap().items;
    assert_eq!(items.len() as u64, newest.0 - 1);
    for (number, kv) in items.iter().enumerate() {
        assert_eq!(kv.key.as_str(), format!("/r/{number:02}"));
        assert_eq!(kv.value.len(), 100 + number * 300);
    }
    assert_eq!(create(&storage, "/r/next", 10).await.unwrap().0, newest.0 + 1);
}

fn tail() -> impl Strategy<Value = Tail> {
    prop_oneof![
        Just(Tail::Missing),
        Just(Tail::Zeros),
        any::<u8>().prop_map(Tail::Noise),
        Just(Tail::WithoutFirstSector)
    ]
}

#[test]
fn acknowledged_writes_survive_any_end_of_the_log() {
    let run = run();
    let (start, end) = (run.acknowledged[0].1, run.log.len() as u64);
    assert!(end > start + 40 * 4096, "the log holds the writes");
    let cuts = (start..=end, tail());
    let config = ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |((synced, tail) in cuts)| {
        let copy = cut(&run, synced, tail);
        block_on(check(&run, copy.0.path(), synced));
    });
}

#[test]
fn damage_to_the_log_is_refused_unless_it_looks_like_a_power_cut() {
    let run = run();
    let (start, end) = (run.acknowledged[0].1 as usize, run.log.len());
    let [.., (before_last, _), (last, _)] = *run.acknowledged else { panic!("no writes") };
    let config = ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(offset in start..end, bit in 0..8_u8)| {
        let copy = Embedded::new();
        let directory = copy.0.path();
        let mut log = run.log.clone();
        log[offset] ^= 1_u8 << bit;
        fs::write(file::database_path(directory), &run.database).unwrap();
        fs::write(file::log_path(directory), &log).unwrap();
        match EmbeddedStorage::open(directory, EmbeddedOptions::default()) {
            Err(OpenError::Damaged { path, detail }) => {
                assert_eq!(path, file::log_path(directory));
                let found: usize = detail.split([' ', ':']).nth(2).unwrap().parse().unwrap();
                assert!(found <= offset, "{offset}: {detail}");
                assert!(fs::read(path).unwrap() == log, "the log was changed");
            }
            Err(error) => panic!("{error}"),
            Ok(storage) => {
                // The mark of the transaction before the last can be what is hit: then two look like one.
                let newest = block_on(storage.current_revision()).unwrap();
                assert!(newest.0 + 1 >= before_last.0, "{newest} of {last} after a flip at {offset}");
            }
        }
    });
}

/// The log as it is when it was begun again and the last transaction was cut off in the middle of a frame's header that
/// lies in two sectors: the first half is still of the round before, the second has the salts of this one.
#[test]
fn a_header_in_two_sectors_is_no_end_of_a_transaction() {
    const FRAME: usize = 24 + 8192;
    let run = run();
    let copy = Embedded::new();
    let directory = copy.0.path();
    fs::write(file::database_path(directory), &run.database).unwrap();
    let start = run.acknowledged[run.acknowledged.len() - 2].1 as usize;
    let mut log = run.log.clone();
    let frames = (log.len() - start) / FRAME;
    assert!(frames >= 3, "the last transaction has {frames} frames");
    for frame in 0..frames - 1 {
        let at = start + frame * FRAME;
        // A page number and a size after the commit of long ago.
        log[at..at + 8].copy_from_slice(&[0, 0, 0, 9, 0, 0, 0, 12]);
    }
    fs::write(file::log_path(directory), log).unwrap();
    block_on(check(&run, directory, start as u64));
}
