#![no_main]

#[path = "../src/selectors.rs"]
#[allow(dead_code, reason = "the file serves several targets")]
mod selectors;

libfuzzer_sys::fuzz_target!(|data: &[u8]| selectors::field_selector(data));
