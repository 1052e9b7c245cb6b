#![no_main]

#[path = "../src/review_answers.rs"]
mod review_answers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| review_answers::answers(data));
