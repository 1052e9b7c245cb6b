//! Runs the fuzz targets of snapshot files and of compression on fixed mutations of a snapshot.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "../../../fuzz/src/compression.rs"]
mod compression;
#[path = "../../../fuzz/src/random.rs"]
mod random;
#[path = "../../../fuzz/src/snapshots.rs"]
mod snapshots;

use random::Random;

const ROUNDS: u32 = 20_000;

#[test]
fn snapshots_hold() {
    mutations(ROUNDS, snapshots::snapshot_read);
}

#[test]
fn compressed_bytes_come_back() {
    mutations(ROUNDS / 10, compression::compression);
}

/// Calls `check` with a valid snapshot, and with mutations of it.
fn mutations(rounds: u32, check: fn(&[u8])) {
    let mut random = Random::default();
    let whole = snapshots::whole();
    check(&whole);
    for _ in 0..rounds {
        let mut data = whole.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(data.len() + 1);
            match random.below(5) {
                0 => data.truncate(at),
                1 => data.insert(at, random.below(256) as u8),
                2 if at < data.len() => data[at] ^= 1 << random.below(8),
                3 => drop(data.drain(at..(at + random.below(9)).min(data.len()))),
                _ => {
                    let from = random.below(whole.len());
                    let length = random.below(whole.len() - from);
                    data.splice(at..at, whole[from..from + length].iter().copied());
                }
            }
        }
        check(&data);
    }
}
