#![no_main]

#[path = "../src/header_blocks.rs"]
#[allow(dead_code, reason = "the file serves several targets")]
mod header_blocks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    header_blocks::header_blocks(data);
});
