#![no_main]

#[path = "../src/websocket_frames.rs"]
mod websocket_frames;

libfuzzer_sys::fuzz_target!(|data: &[u8]| websocket_frames::frames(data));
