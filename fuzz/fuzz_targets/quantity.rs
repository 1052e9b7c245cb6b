#![no_main]

#[path = "../src/quantities.rs"]
#[allow(dead_code, reason = "the file serves several targets")]
mod quantities;

libfuzzer_sys::fuzz_target!(|data: &[u8]| quantities::quantity(data));
