//! Runs the fuzz target of frames on fixed mutations of a conversation.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

#[path = "../../../fuzz/src/random.rs"]
mod random;
#[path = "../../../fuzz/src/websocket_frames.rs"]
mod websocket_frames;

use random::Random;

const ROUNDS: u32 = 5_000;

const FRAMES: &[u8] = b"\x82\x84mask\x6d\x62\x63\x64\x01\x02ab\x89\x01p\x00\x01c\x80\x00\x82\x7e\x00\x03abc\x82\x7f\0\0\0\0\0\0\0\x01z\x88\x02\x03\xe8";

#[test]
fn frames_hold() {
    let mut random = Random::default();
    websocket_frames::frames(FRAMES);
    for _ in 0..ROUNDS {
        let mut data = FRAMES[random.below(12)..].to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(data.len() + 1);
            match random.below(4) {
                0 => data.truncate(at),
                1 => data.insert(at, random.below(256) as u8),
                2 if at < data.len() => data[at] ^= 1 << random.below(8),
                _ => drop(data.drain(at..(at + random.below(9)).min(data.len()))),
            }
        }
        websocket_frames::frames(&data);
    }
}
