#![no_main]

#[path = "../src/authorization.rs"]
#[allow(dead_code, reason = "the file serves several targets")]
mod authorization;

libfuzzer_sys::fuzz_target!(|data: &[u8]| authorization::policies(data));
