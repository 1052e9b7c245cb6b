#![no_main]

#[path = "../src/snapshots.rs"]
mod snapshots;

libfuzzer_sys::fuzz_target!(|data: &[u8]| snapshots::snapshot_read(data));
