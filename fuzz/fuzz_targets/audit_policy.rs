#![no_main]

#[path = "../src/audit_policies.rs"]
mod audit_policies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| audit_policies::audit_policy(data));
