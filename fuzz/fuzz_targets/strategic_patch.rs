#![no_main]

#[path = "../src/patches.rs"]
#[allow(dead_code, reason = "the file serves several targets")]
mod patches;

libfuzzer_sys::fuzz_target!(|data: &[u8]| patches::strategic_patch(data));
