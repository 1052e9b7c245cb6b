//! Runs the fuzz target of header blocks on fixed sequences of headers, and on mutations of them.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../../../fuzz/src/header_blocks.rs"]
mod header_blocks;
#[path = "../../../fuzz/src/random.rs"]
mod random;

use random::Random;

const ROUNDS: u32 = 100_000;

/// The number of heads, with which most blocks begin.
const HEADS: usize = 6;

const PIECES: [&[u8]; 32] = [
    b"\x82\x87\x84",
    b"\x83\x86\x84\x41\x01h",
    b"\x82\x87\x04\x04/a?b",
    b"\x82\x87\x04\x07/a b#\xff\"",
    b"\x42\x07CONNECT\x41\x03h:1",
    b"\x82\x87\x44\x06/<%41>\x01\x03u@h",
    b"\x82",
    b"\x86",
    b"\x04\x01*",
    b"\x04\x02?a",
    b"\x04\x03/%z",
    b"\x01\x00",
    b"\x41\x03a b",
    b"\x01\x81\x1f",
    b"\x08\x03200",
    b"\x00\x09:protocol\x01x",
    b"\x40\x01a\x01b",
    b"\x40\x01A\x01b",
    b"\x00\x01a\x01\n",
    b"\xbe",
    b"\xbf",
    b"\x20",
    b"\x3f\xe1\x1f",
    b"\x00\x02te\x08trailers",
    b"\x00\x02te\x00",
    b"\x00\x0aconnection\x01x",
    b"\x0f\x0d\x01\x30",
    b"\x0f\x0d\x02+1",
    b"\x0f\x17\x01\x61",
    b"\x80",
    b"\x0f\x1f\x00",
    b"\x7f\x00\x85\xf2\xb2\x4a\x87\xff\x82\x1d\x7f",
];

#[test]
fn header_blocks_hold() {
    let mut random = Random::default();
    let mut decoded = 0;
    for _ in 0..ROUNDS {
        let mut data = Vec::new();
        for _ in 0..=random.below(3) {
            let mut block = Vec::new();
            if random.below(8) > 0 {
                block.extend_from_slice(PIECES[random.below(HEADS)]);
            }
            for _ in 0..random.below(4) {
                block.extend_from_slice(PIECES[HEADS + random.below(PIECES.len() - HEADS)]);
            }
            if random.below(8) == 0 && !block.is_empty() {
                let at = random.below(block.len());
                block[at] ^= 1 << random.below(8);
            }
            data.push(block.len() as u8);
            data.extend(block);
        }
        decoded += header_blocks::header_blocks(&data);
    }
    assert!(decoded > ROUNDS as usize / 2, "{decoded} of {ROUNDS}");
}
