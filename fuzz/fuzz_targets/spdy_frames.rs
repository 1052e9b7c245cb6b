#![no_main]

#[path = "../src/spdy_frames.rs"]
mod spdy_frames;

libfuzzer_sys::fuzz_target!(|data: &[u8]| spdy_frames::frames(data));
