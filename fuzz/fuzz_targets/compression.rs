#![no_main]

#[path = "../src/compression.rs"]
mod compression;

libfuzzer_sys::fuzz_target!(|data: &[u8]| compression::compression(data));
