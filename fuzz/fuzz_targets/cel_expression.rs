#![no_main]

#[path = "../src/expressions.rs"]
mod expressions;

libfuzzer_sys::fuzz_target!(|data: &[u8]| expressions::expression(data));
