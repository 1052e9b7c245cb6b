//! Runs the fuzz target of sessions on fixed mutations of a conversation.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

#[path = "../../../fuzz/src/random.rs"]
mod random;
#[path = "../../../fuzz/src/spdy_frames.rs"]
mod spdy_frames;

use random::Random;

const ROUNDS: u32 = 2_000;

/// The frames of a client that opens two streams, sends data, ends one stream and resets the other.
fn conversation() -> Vec<u8> {
    let first = include_bytes!("../fixtures/error-stream");
    let second = include_bytes!("../fixtures/stdin-stream");
    let open = |stream: u8, headers: &[u8]| {
        [&[0x80, 3, 0, 1, 0, 0, 0, 10 + headers.len() as u8, 0, 0, 0, stream, 0, 0, 0, 0, 0, 0][..], headers]
            .concat()
    };
    [
        &open(1, first)[..],
        &open(3, second),
        b"\0\0\0\x03\0\0\0\x05input\0\0\0\x03\x01\0\0\x01.",
        b"\x80\x03\0\x06\0\0\0\x04\0\0\0\x01\x80\x03\0\x04\0\0\0\x04\0\0\0\0",
        b"\x80\x03\0\x03\0\0\0\x08\0\0\0\x01\0\0\0\x05\x80\x03\0\x07\0\0\0\x08\0\0\0\0\0\0\0\0",
    ]
    .concat()
}

#[test]
fn frames_hold() {
    let mut random = Random::default();
    let conversation = conversation();
    spdy_frames::frames(&conversation);
    for _ in 0..ROUNDS {
        let mut data = conversation.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(data.len() + 1);
            match random.below(5) {
                0 => data.truncate(at),
                1 => data.insert(at, random.below(256) as u8),
                2 if at < data.len() => data[at] ^= 1 << random.below(8),
                3 => drop(data.drain(at..(at + random.below(9)).min(data.len()))),
                _ => {
                    let from = random.below(conversation.len());
                    let length = random.below(conversation.len() - from);
                    data.splice(at..at, conversation[from..from + length].iter().copied());
                }
            }
        }
        spdy_frames::frames(&data);
    }
}
