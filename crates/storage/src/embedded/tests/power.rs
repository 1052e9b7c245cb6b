//! What a power cut leaves: the files as they were synced last, and of what was written after that any part, in any
//! order, or something else in its place.

use super::*;
use proptest::prelude::*;

/// How the end of the journal may look.
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

/// The files of a store that was written to, and never synced its database.
struct Run {
    database: Vec<u8>,
    /// SQLite's log, and how long it was after each write.
    log: Vec<u8>,
    lengths: Vec<u64>,
    journal: Vec<u8>,
    /// Where in the journal each write ends.
    acknowledged: Vec<(Revision, u64)>,
}

/// Writes one after the other, each in a transaction of its own, and keeps the files as they are then.
fn run() -> Run {
    let factory = Embedded::new();
    let log = file::log_path(factory.0.path());
    let storage = open(factory.0.path());
    let mut lengths = vec![log.metadata().unwrap().len()];
    block_on(async {
        for number in 0..40 {
            create(&storage, &format!("/r/{number:02}"), 100 + number * 300).await.unwrap();
            settled(&storage).await;
            lengths.push(log.metadata().unwrap().len());
        }
    });
    // Before the store is closed, which copies the log into the database.
    let database = fs::read(file::database_path(factory.0.path())).unwrap();
    let journal = fs::read(first_segment(factory.0.path())).unwrap();
    let mut acknowledged = vec![(Revision(1), journal::format::SECTOR as u64)];
    acknowledged.extend(batches(&journal));
    assert_eq!(acknowledged.len(), 41);
    Run { database, log: fs::read(log).unwrap(), lengths, journal, acknowledged }
}

/// A copy of the store whose journal is synced up to `synced`, with such a tail after that. Of the log nothing is there.
fn cut(run: &Run, synced: u64, tail: Tail) -> Embedded {
    let copy = Embedded::new();
    let directory = copy.0.path();
    fs::write(file::database_path(directory), &run.database).unwrap();
    // Nothing is written before the batch before it is synced, so only one can be there in part.
    let written = run.acknowledged.iter().map(|(_, end)| *end).find(|end| *end > synced);
    let (journal, _) = run.journal.split_at(written.unwrap_or(synced) as usize);
    let (kept, lost) = journal.split_at(synced as usize);
    let mut journal = kept.to_vec();
    match tail {
        Tail::Missing => {}
        Tail::Zeros => journal.resize(kept.len() + lost.len(), 0),
        Tail::Noise(byte) => journal.extend(lost.iter().map(|there| there.wrapping_add(byte | 1))),
        Tail::WithoutFirstSector => {
            journal.resize(journal.len() + lost.len().min(512), 0);
            journal.extend(lost.iter().skip(512));
        }
    }
    fs::write(first_segment(directory), journal).unwrap();
    copy
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// Everything that was acknowledged when `synced` bytes were is there, whole; the revisions go on.
async fn check(run: &Run, directory: &Path, synced: u64) {
    let last = run.acknowledged.iter().filter(|(_, end)| *end <= synced).map(|(revision, _)| *revision);
    check_from(directory, last.max().unwrap()).await;
}

async fn check_from(directory: &Path, last: Revision) {
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
    drop(storage);
    assert_eq!(open(directory).current_revision().await.unwrap().0, newest.0 + 1);
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
fn acknowledged_writes_survive_any_end_of_the_journal() {
    let run = run();
    let (start, end) = (run.acknowledged[0].1, run.acknowledged[40].1);
    assert!(end > start + 40 * 4096, "the journal holds the writes");
    let cuts = (start..=end, tail());
    let config = ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |((synced, tail) in cuts)| {
        let copy = cut(&run, synced, tail);
        block_on(check(&run, copy.0.path(), synced));
    });
}

#[test]
fn damage_to_the_journal_is_refused_unless_it_looks_like_a_power_cut() {
    let run = run();
    let [.., (before_last, tail), (last, end)] = *run.acknowledged else { panic!("no writes") };
    let config = ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(offset in 0..end as usize, bit in 0..8_u8)| {
        let copy = Embedded::new();
        let directory = copy.0.path();
        let mut journal = run.journal.clone();
        journal[offset] ^= 1_u8 << bit;
        fs::write(file::database_path(directory), &run.database).unwrap();
        fs::write(first_segment(directory), &journal).unwrap();
        match EmbeddedStorage::open(directory, EmbeddedOptions::default()) {
            Err(OpenError::Damaged { path, detail }) => {
                assert_eq!(path, first_segment(directory));
                let found: usize = detail.split([' ', ':']).nth(2).unwrap().parse().unwrap();
                assert!(found <= offset, "{offset}: {detail}");
                assert!(fs::read(path).unwrap() == journal, "the journal was changed");
            }
            Err(error) => panic!("{error}"),
            Ok(storage) => {
                // Between two batches there is nothing, and the last one may have been cut off.
                let expected = if offset as u64 >= tail { before_last } else { last };
                let newest = block_on(storage.current_revision()).unwrap();
                assert!(newest >= expected, "{newest} of {last} after a flip at {offset}");
            }
        }
    });
}

#[test]
fn damage_to_the_log_loses_nothing_that_the_journal_has() {
    let run = run();
    let last = run.acknowledged[40].0;
    let config = ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(offset in 32..run.log.len(), bit in 0..8_u8, length in 0..2_usize)| {
        let copy = Embedded::new();
        let directory = copy.0.path();
        let mut log = run.log.clone();
        log[offset] ^= 1_u8 << bit;
        log.truncate([log.len(), offset][length]);
        fs::write(file::database_path(directory), &run.database).unwrap();
        fs::write(file::log_path(directory), &log).unwrap();
        fs::write(first_segment(directory), &run.journal).unwrap();
        block_on(check_from(directory, last));
    });
}

#[test]
fn a_segment_that_is_not_there_is_missed() {
    let run = run();
    let header = journal::format::SegmentHeader::decode(&run.journal[..512]).unwrap();
    let next = |first, base| {
        let header = journal::format::SegmentHeader { number: 2, first, base, ..header };
        let copy = Embedded::new();
        fs::write(file::database_path(copy.0.path()), &run.database).unwrap();
        let [even, odd] = journal::paths(copy.0.path());
        fs::write(&even, header.encode()).unwrap();
        (copy, odd)
    };
    let refused = |directory: &Path| {
        let opened = EmbeddedStorage::open(directory, EmbeddedOptions::default()).map(drop);
        let error = opened.expect_err("writes are missing");
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    };
    // The database has nothing, and is to have everything: then the segment before it may be gone or written over.
    let (all, none) = (Revision(41), Revision(1));
    let (copy, odd) = next(Revision(42), all);
    refused(copy.0.path());
    fs::write(odd, &run.journal).unwrap();
    refused(copy.0.path());
    // It need not have anything: then the segment before it is to go as far as this one begins.
    let (copy, odd) = next(Revision(42), none);
    refused(copy.0.path());
    let shorter = run.acknowledged[39].1 as usize;
    fs::write(&odd, &run.journal[..shorter]).unwrap();
    refused(copy.0.path());
    fs::write(&odd, &run.journal).unwrap();
    block_on(check_from(copy.0.path(), all));
}

/// How many frames of a log SQLite takes for good.
fn good_frames(directory: &Path) -> u64 {
    let connection = rusqlite::Connection::open(file::database_path(directory)).unwrap();
    connection.query_row("SELECT count(*) FROM writes", (), |row| row.get::<_, i64>(0)).unwrap();
    let frames = connection.query_row("PRAGMA wal_checkpoint(NOOP)", (), |row| row.get::<_, i64>(1)).unwrap();
    // Not to copy it at the end.
    std::mem::forget(connection);
    frames as u64
}

/// Format versions up to 3 synced the log for each write.
#[test]
fn damage_to_an_older_log_is_refused_unless_it_looks_like_a_power_cut() {
    let run = run();
    let start = run.lengths[0] as usize;
    let config = ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(offset in start..run.log.len(), bit in 0..8_u8)| {
        let copy = Embedded::new();
        let directory = copy.0.path();
        let mut log = run.log.clone();
        log[offset] ^= 1_u8 << bit;
        fs::write(file::database_path(directory), &run.database).unwrap();
        fs::write(file::log_path(directory), &log).unwrap();
        if offset < 32 {
            return Ok(());
        }
        match log::check(&file::log_path(directory), good_frames(directory)) {
            Err(OpenError::Damaged { path, detail }) => {
                assert_eq!(path, file::log_path(directory));
                let found: usize = detail.split([' ', ':']).nth(2).unwrap().parse().unwrap();
                assert!(found <= offset, "{offset}: {detail}");
                assert!(fs::read(path).unwrap() == log, "the log was changed");
            }
            Err(error) => panic!("{error}"),
            // The mark of the transaction before the last can be what is hit: then two look like one.
            Ok(()) => assert!(offset as u64 >= run.lengths[38], "a flip at {offset}"),
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
    let start = run.lengths[39] as usize;
    let mut log = run.log.clone();
    let frames = (log.len() - start) / FRAME;
    assert!(frames >= 3, "the last transaction has {frames} frames");
    for frame in 0..frames - 1 {
        let at = start + frame * FRAME;
        // A page number and a size after the commit of long ago.
        log[at..at + 8].copy_from_slice(&[0, 0, 0, 9, 0, 0, 0, 12]);
    }
    fs::write(file::log_path(directory), log).unwrap();
    log::check(&file::log_path(directory), good_frames(directory)).unwrap();
    assert_eq!(file::log_path(directory).metadata().unwrap().len(), start as u64, "it was cut");
}
