#![no_main]

#[path = "../src/request_infos.rs"]
mod request_infos;

libfuzzer_sys::fuzz_target!(|data: &[u8]| request_infos::request_info(data));
