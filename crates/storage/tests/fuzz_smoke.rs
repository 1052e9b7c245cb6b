//! Runs the fuzz target that reads snapshot files on fixed mutations of a valid one.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "../../../fuzz/src/random.rs"]
mod random;
#[path = "../../../fuzz/src/snapshots.rs"]
mod snapshots;

use random::Random;

const ROUNDS: u32 = 20_000;

#[test]
fn snapshots_hold() {
    let mut random = Random::default();
    let whole = snapshots::whole();
    snapshots::snapshot_read(&whole);
    for _ in 0..ROUNDS {
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
        snapshots::snapshot_read(&data);
    }
}
