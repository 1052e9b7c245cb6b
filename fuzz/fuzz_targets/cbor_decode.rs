#![no_main]

#[path = "../codec.rs"]
mod codec;

libfuzzer_sys::fuzz_target!(|data: &[u8]| codec::cbor(data));
