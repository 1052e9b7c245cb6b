//! Tests of power cuts: the files are as they were last synced, and of the later data any part may be there, in any
//! order, or other data in its place.

use super::*;
use proptest::prelude::*;

/// The state of the journal's end.
#[derive(Debug, Clone, Copy)]
enum Tail {
    /// The file was not extended.
    Missing,
    /// The file was extended, but not written.
    Zeros,
    /// Noise was written.
    Noise(u8),
    /// The later sectors were written, the first one was not.
    WithoutFirstSector,
}

/// The files of a store that was written to and whose database was never synced.
struct Run {
    database: Vec<u8>,
    /// SQLite's WAL, and its length after each write.
    log: Vec<u8>,
    lengths: Vec<u64>,
    journal: Vec<u8>,
    /// The offset in the journal at which each write ends.
    acknowledged: Vec<(Revision, u64)>,
}

/// Makes writes one after the other, each in its own transaction, and returns the files.
fn run() -> Run {
    let factory = Embedded::new();
    let log = paths::wal(factory.0.path());
    let storage = open(factory.0.path());
    let mut lengths = vec![log.metadata().unwrap().len()];
    block_on(async {
        for number in 0..40 {
            create(&storage, &format!("/r/{number:02}"), 100 + number * 300).await.unwrap();
            settled(&storage).await;
            lengths.push(log.metadata().unwrap().len());
        }
    });
    // Before the store is closed, which checkpoints the WAL.
    let database = fs::read(paths::database(factory.0.path())).unwrap();
    let journal = fs::read(first_segment(factory.0.path())).unwrap();
    let mut acknowledged = vec![(Revision(1), journal::format::SECTOR as u64)];
    acknowledged.extend(batches(&journal));
    assert_eq!(acknowledged.len(), 41);
    Run { database, log: fs::read(log).unwrap(), lengths, journal, acknowledged }
}

/// A copy of the store whose journal is synced up to `synced`, followed by `tail`. Its WAL is empty.
fn cut(run: &Run, synced: u64, tail: Tail) -> Embedded {
    let copy = Embedded::new();
    let directory = copy.0.path();
    fs::write(paths::database(directory), &run.database).unwrap();
    // A batch is written only after the previous one is synced, so only one can be partial.
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

/// Every write acknowledged by the time `synced` bytes were is there, complete; the revisions continue.
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
        fs::write(paths::database(directory), &run.database).unwrap();
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
                // Between two batches there is only padding, and the last batch may have been truncated.
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
        fs::write(paths::database(directory), &run.database).unwrap();
        fs::write(paths::wal(directory), &log).unwrap();
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
        fs::write(paths::database(copy.0.path()), &run.database).unwrap();
        let [even, odd] = journal::paths(copy.0.path());
        fs::write(&even, header.encode()).unwrap();
        (copy, odd)
    };
    let refused = |directory: &Path| {
        let opened = EmbeddedStorage::open(directory, EmbeddedOptions::default()).map(drop);
        let error = opened.expect_err("writes are missing");
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    };
    // The database is empty, and the segment requires all writes in it: the segment before it may be deleted or
    // overwritten.
    let (all, none) = (Revision(41), Revision(1));
    let (copy, odd) = next(Revision(42), all);
    refused(copy.0.path());
    fs::write(odd, &run.journal).unwrap();
    refused(copy.0.path());
    // The segment requires none of them: the segment before it must then reach the start of this one.
    let (copy, odd) = next(Revision(42), none);
    refused(copy.0.path());
    let shorter = run.acknowledged[39].1 as usize;
    fs::write(&odd, &run.journal[..shorter]).unwrap();
    refused(copy.0.path());
    fs::write(&odd, &run.journal).unwrap();
    block_on(check_from(copy.0.path(), all));
}

/// The number of frames of a WAL that SQLite finds valid.
fn good_frames(directory: &Path) -> u64 {
    let connection = rusqlite::Connection::open(paths::database(directory)).unwrap();
    connection.query_row("SELECT count(*) FROM writes", (), |row| row.get::<_, i64>(0)).unwrap();
    let frames = connection.query_row("PRAGMA wal_checkpoint(NOOP)", (), |row| row.get::<_, i64>(1)).unwrap();
    // Leaked, because closing it would checkpoint the WAL.
    std::mem::forget(connection);
    frames as u64
}

/// Format versions up to 3 synced the WAL for each write.
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
        fs::write(paths::database(directory), &run.database).unwrap();
        fs::write(paths::wal(directory), &log).unwrap();
        if offset < 32 {
            return Ok(());
        }
        match wal::check(&paths::wal(directory), good_frames(directory)) {
            Err(OpenError::Damaged { path, detail }) => {
                assert_eq!(path, paths::wal(directory));
                let found: usize = detail.split([' ', ':']).nth(2).unwrap().parse().unwrap();
                assert!(found <= offset, "{offset}: {detail}");
                assert!(fs::read(path).unwrap() == log, "the log was changed");
            }
            Err(error) => panic!("{error}"),
            // The damage can hit the commit mark of the transaction before the last: then two look like one.
            Ok(()) => assert!(offset as u64 >= run.lengths[38], "a flip at {offset}"),
        }
    });
}

/// A WAL that was restarted, and whose last transaction was cut off within a frame header that spans two sectors: the
/// first half is still from before the restart, the second has the salts of this round.
#[test]
fn a_header_in_two_sectors_is_no_end_of_a_transaction() {
    const FRAME: usize = 24 + 8192;
    let run = run();
    let copy = Embedded::new();
    let directory = copy.0.path();
    fs::write(paths::database(directory), &run.database).unwrap();
    let start = run.lengths[39] as usize;
    let mut log = run.log.clone();
    let frames = (log.len() - start) / FRAME;
    assert!(frames >= 3, "the last transaction has {frames} frames");
    for frame in 0..frames - 1 {
        let at = start + frame * FRAME;
        // A page number, and a size after the commit, from before the restart.
        log[at..at + 8].copy_from_slice(&[0, 0, 0, 9, 0, 0, 0, 12]);
    }
    fs::write(paths::wal(directory), log).unwrap();
    wal::check(&paths::wal(directory), good_frames(directory)).unwrap();
    assert_eq!(paths::wal(directory).metadata().unwrap().len(), start as u64, "it was cut");
}
