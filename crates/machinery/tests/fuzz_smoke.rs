//! Runs the decoders' fuzz targets on recorded objects and on mutations of them, the same ones every time.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

#[path = "../../../fuzz/codec.rs"]
mod codec;

use std::path::Path;

/// The number of mutations of each recorded object.
const ROUNDS: u64 = 60;

/// Fragments that are likely to break decoders.
const PIECES: [&[u8]; 24] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"null",
    b"-",
    b"1e999",
    b"\\ud800",
    b"\xff",
    b"\0",
    b":",
    b",",
    b"&a ",
    b"*a",
    b"<<: ",
    b"|\n",
    b"\t",
    b"!!int ",
    b"0x",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x80",
    b"---\n",
    b"kind",
];

fn corpus(extension: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/api-roundtrip");
    let mut paths: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    assert!(paths.len() >= 12);
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn run(extension: &str, target: fn(&[u8])) {
    run_on(corpus(extension), target);
}

fn run_on(corpus: Vec<Vec<u8>>, target: fn(&[u8])) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as usize % bound.max(1)
    };
    for original in corpus {
        target(&original);
        for _ in 0..ROUNDS {
            let mut bytes = original.clone();
            for _ in 0..=below(4) {
                let at = below(bytes.len());
                match below(5) {
                    0 => bytes[at] = below(256) as u8,
                    1 => bytes.truncate(at),
                    2 => drop(bytes.drain(at..(at + 1 + below(20)).min(bytes.len()))),
                    3 => drop(bytes.splice(at..at, PIECES[below(PIECES.len())].iter().copied())),
                    _ => {
                        let part = bytes[at..(at + below(200)).min(bytes.len())].to_vec();
                        let to = below(bytes.len());
                        drop(bytes.splice(to..to, part));
                    }
                }
                if bytes.is_empty() {
                    break;
                }
            }
            target(&bytes);
        }
    }
    for piece in PIECES {
        target(piece);
        target(&piece.repeat(3_000));
    }
    target(b"");
}

#[test]
fn json_bodies() {
    run("json", codec::json);
}

#[test]
fn yaml_bodies() {
    run("yaml", codec::yaml);
}

#[test]
fn cbor_bodies() {
    let corpus = corpus("json").into_iter().map(|text| {
        let value = pintle_machinery::codec::json::decode_any(&text).unwrap();
        pintle_machinery::codec::cbor::encode_any(&value)
    });
    run_on(corpus.collect(), codec::cbor);
}

#[test]
fn protobuf_bodies() {
    run("pb", codec::protobuf);
}
