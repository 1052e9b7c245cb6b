#![no_main]

#[path = "../src/continue_tokens.rs"]
#[allow(dead_code, reason = "the file serves several targets")]
mod continue_tokens;

libfuzzer_sys::fuzz_target!(|data: &[u8]| continue_tokens::continue_token(data));
