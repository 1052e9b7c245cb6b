#![no_main]

#[path = "../src/certificates.rs"]
mod certificates;

libfuzzer_sys::fuzz_target!(|data: &[u8]| certificates::verify(data));
