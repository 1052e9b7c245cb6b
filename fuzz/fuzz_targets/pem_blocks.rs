#![no_main]

#[path = "../src/pem_blocks.rs"]
mod pem_blocks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| pem_blocks::blocks(data));
