//! Simulates power cuts at any point of a run: of the data that was not synced, any sectors may have been written, in
//! any order.
//!
//! `PINTLE_POWER_CUTS` is the number of simulated disks; `cargo xtask crash` makes many more than a test run.

use super::{
    history::{History, value},
    *,
};
use pintle_fault_vfs::{FaultDisk, Operation, Random, Trace};

fn cuts() -> usize {
    std::env::var("PINTLE_POWER_CUTS").map_or(250, |cuts| cuts.parse().unwrap())
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// Small sizes, so that the run has checkpoints, restarts the WAL, and writes pages of large transactions early.
fn small() -> EmbeddedOptions {
    EmbeddedOptions {
        wal_bytes: 200 << 10,
        cache_bytes: 64 << 10,
        spare_bytes: 128 << 10,
        ..EmbeddedOptions::default()
    }
}

/// Concurrent writers on their own keys, which they create, update and delete; each acknowledged revision becomes a
/// mark.
async fn load(storage: &Arc<EmbeddedStorage>, disk: &Arc<FaultDisk>, first: u64, writes: u64) {
    let writers: Vec<_> = (first..first + 5)
        .map(|writer| {
            let (storage, disk) = (Arc::clone(storage), Arc::clone(disk));
            tokio::spawn(async move {
                let mut random = Random::new(writer);
                let mut current = [None; 3];
                for number in 0..writes {
                    let object = random.below(3) as usize;
                    let key = Key::new(format!("/r/{writer}-{object}"));
                    let size = [10, 700, 3_000, 20_000][random.below(4) as usize];
                    let value = value(writer, number, size);
                    let revision = match current[object] {
                        None => storage.create(&key, value.into(), None).await,
                        Some(expected) if random.below(3) == 0 => storage.delete(&key, expected).await,
                        Some(expected) => storage.update(&key, value.into(), expected, None).await,
                    };
                    let revision = revision.unwrap();
                    disk.mark(revision.0);
                    let exists = storage.get(&key).await.unwrap().kv.is_some();
                    current[object] = exists.then_some(revision);
                    if writer == first && number % 8 == 7 {
                        storage.compact(Revision(revision.0 - 5)).await.unwrap();
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

/// Records a run on a directory that continues `history`; it ends as in a crash, with nothing closed.
async fn run(directory: &Path, history: &mut History, first: u64, writes: u64) -> Trace {
    let disk = Arc::new(FaultDisk::new(directory));
    disk.record().unwrap();
    let storage = Arc::new(EmbeddedStorage::open(directory, small()).unwrap());
    let request = WatchRequest { prefix: String::new(), after: history.newest() };
    let mut stream = storage.watch(request).await.unwrap();
    load(&storage, &disk, first, writes).await;
    let last = storage.current_revision().await.unwrap();
    history.follow(&mut stream, last).await;
    let trace = disk.recorded().unwrap();
    drop(storage);
    trace
}

/// The points of a run to cut the power at: around every sync, and as many others at random.
fn points(trace: &Trace, random: &mut Random) -> Vec<usize> {
    let syncs = trace.operations.iter().enumerate();
    let syncs = syncs.filter(|(_, operation)| matches!(operation, Operation::Sync { .. }));
    let mut points: Vec<usize> = syncs.flat_map(|(at, _)| [at, at + 1]).collect();
    for _ in 0..points.len() {
        points.push(random.below(trace.operations.len() as u64 + 1) as usize);
    }
    points
}

#[test]
fn acknowledged_writes_survive_a_power_cut_at_any_point() {
    let original = Embedded::fast();
    let mut history = History::default();
    drop(open(original.0.path()));
    let trace = block_on(run(original.0.path(), &mut history, 0, 60));
    let restarts = trace.operations.iter().filter(
        |operation| matches!(operation, Operation::Write { file, offset: 0, .. } if file.ends_with("-wal")),
    );
    assert!(restarts.count() > 3, "the log was begun again");

    let mut random = Random::new(1);
    let mut points = points(&trace, &mut random);
    points.truncate(points.len() / 7 * 7 - 1);
    let copy = Embedded::fast();
    let (mut made, mut shorter) = (0, 0);
    while made < cuts() {
        // A step that visits every point, neighbouring points far apart.
        for (number, point) in
            (0..points.len()).filter_map(|at| points.get(at * 7 % points.len())).enumerate()
        {
            if made >= cuts() {
                break;
            }
            let seed = random.number();
            let what = format!("cut after {point} operations, seed {seed:#x}");
            trace.cut(*point, &mut Random::new(seed)).write(copy.0.path()).unwrap();
            let acknowledged = Revision(trace.marks(*point).max().unwrap_or(1));
            if number % 10 == 9 {
                twice(copy.0.path(), &history, acknowledged, seed, &what);
            } else {
                let opened = EmbeddedStorage::open(copy.0.path(), small());
                let storage = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
                block_on(async {
                    let newest = history.check(&storage, acknowledged, &what).await;
                    shorter += usize::from(newest < history.newest());
                    let next = create(&storage, "/next", 10).await.unwrap();
                    assert_eq!(next.0, newest.0 + 1, "{what}");
                });
            }
            made += 1;
        }
    }
    assert!(shorter > made / 2, "of {made} disks only {shorter} had lost anything");
    eprintln!("{made} disks of {} points", points.len());
}

/// Opens the store again, writes, and cuts the power once more.
fn twice(directory: &Path, history: &History, acknowledged: Revision, seed: u64, what: &str) {
    let mut random = Random::new(seed);
    let newest = {
        let storage = EmbeddedStorage::open(directory, small());
        let storage = storage.unwrap_or_else(|error| panic!("{what}: {error}"));
        let newest = block_on(history.check(&storage, acknowledged, what));
        block_on(settled(&storage));
        let image = pintle_fault_vfs::Image::read(directory).unwrap();
        drop(storage);
        // The state after the first cut, and the changes of opening the store.
        image.write(directory).unwrap();
        newest
    };
    let mut history = history.clone();
    history.events.retain(|at, _| *at <= newest);
    let trace = block_on(run(directory, &mut history, 100 + seed % 1_000 * 10, 4));
    for _ in 0..3 {
        let point = random.below(trace.operations.len() as u64 + 1) as usize;
        trace.cut(point, &mut random).write(directory).unwrap();
        let what = format!("{what}, and again after {point}");
        let acknowledged = Revision(trace.marks(point).max().unwrap_or(0)).max(newest);
        let storage = EmbeddedStorage::open(directory, small());
        let storage = storage.unwrap_or_else(|error| panic!("{what}: {error}"));
        block_on(history.check(&storage, acknowledged, &what));
    }
}

#[test]
fn a_power_cut_while_a_store_is_made_leaves_none_or_an_empty_one() {
    let original = Embedded::fast();
    let disk = FaultDisk::new(original.0.path());
    disk.record().unwrap();
    drop(open(original.0.path()));
    let trace = disk.recorded().unwrap();
    let at = |wanted: &dyn Fn(&Operation) -> bool| trace.operations.iter().position(wanted).unwrap();
    let renamed = at(&|operation| matches!(operation, Operation::Rename { .. }));
    let synced = at(&|operation| *operation == Operation::SyncDirectory);
    assert!(renamed > 5 && synced == renamed + 1, "{:?}", trace.operations);
    let copy = Embedded::fast();
    for seed in 0..300 {
        let mut random = Random::new(seed);
        // Every second cut is between the rename and the sync of the directory.
        let point = match seed % 2 {
            0 => random.below(trace.operations.len() as u64 + 1) as usize,
            _ => synced,
        };
        trace.cut(point, &mut random).write(copy.0.path()).unwrap();
        let storage = open(copy.0.path());
        block_on(async {
            assert_eq!(storage.current_revision().await, Ok(Revision(1)), "{point}, {seed}");
            create(&storage, "/r/first", 10).await.unwrap();
        });
        drop(storage);
        assert!(!fs::exists(copy.0.path().join("pintle.db.new")).unwrap());
    }
}
