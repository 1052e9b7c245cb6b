#![no_main]

#[path = "../src/http1_requests.rs"]
#[allow(dead_code, reason = "the file serves several targets")]
mod http1_requests;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    http1_requests::requests(data);
});
