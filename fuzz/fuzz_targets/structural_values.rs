#![no_main]

#[path = "../src/structural.rs"]
#[allow(dead_code, reason = "the file serves several targets")]
mod structural;

libfuzzer_sys::fuzz_target!(|data: &[u8]| structural::values(data));
