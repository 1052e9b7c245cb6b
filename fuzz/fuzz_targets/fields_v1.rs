#![no_main]

#[path = "../src/managed_fields.rs"]
#[allow(dead_code, reason = "the file serves several targets")]
mod managed_fields;

libfuzzer_sys::fuzz_target!(|data: &[u8]| managed_fields::fields_v1(data));
