#![no_main]

#[path = "../src/tokens.rs"]
#[allow(dead_code, reason = "the functions of several targets")]
mod tokens;

libfuzzer_sys::fuzz_target!(|data: &[u8]| tokens::claims(data));
