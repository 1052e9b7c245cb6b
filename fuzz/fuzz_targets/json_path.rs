#![no_main]

#[path = "../src/json_paths.rs"]
#[allow(dead_code, reason = "the file serves several targets")]
mod json_paths;

libfuzzer_sys::fuzz_target!(|data: &[u8]| json_paths::json_path(data));
