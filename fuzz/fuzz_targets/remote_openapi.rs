#![no_main]

#[path = "../src/remote_documents.rs"]
mod remote_documents;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    remote_documents::remote_openapi(data);
});
