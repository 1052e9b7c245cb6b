//! Checks that each parser of untrusted bytes has a fuzz target, and that each target is declared and run by a smoke
//! test.

use super::{files, read};

#[test]
fn every_fuzz_target_is_declared_and_smoke_run() {
    let manifest = read("fuzz/Cargo.toml");
    let smoke = [
        "aggregator/tests/fuzz_smoke.rs",
        "apiextensions/tests/properties/smoke.rs",
        "apiserver/tests/fuzz_smoke.rs",
        "audit/tests/fuzz_smoke.rs",
        "authorization/tests/fuzz_smoke.rs",
        "cel/tests/fuzz_smoke.rs",
        "dynamic-admission/tests/fuzz_smoke.rs",
        "http1/tests/fuzz_smoke.rs",
        "http2/tests/fuzz_smoke.rs",
        "machinery/tests/fuzz_smoke.rs",
        "machinery/tests/properties/smoke.rs",
        "service-account/tests/tokens/smoke.rs",
        "spdy/tests/fuzz_smoke.rs",
        "storage/tests/fuzz_smoke.rs",
        "websocket/tests/fuzz_smoke.rs",
        "x509/tests/fuzz_smoke.rs",
    ]
    .map(|file| read(&format!("crates/{file}")))
    .concat();
    let properties: String = ["apiextensions", "machinery"]
        .map(|name| format!("crates/{name}/tests/properties"))
        .iter()
        .flat_map(|folder| files(folder).into_iter().map(move |file| read(&format!("{folder}/{file}"))))
        .collect();
    for file in files("fuzz/fuzz_targets") {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{file}\"")), "{file} is not declared");
        let target = read(&format!("fuzz/fuzz_targets/{file}"));
        let path = target.split("#[path = \"../").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert!(smoke.contains(&format!("fuzz/{path}\"")), "{file}: the tests do not include {path}");
        let call = target.split("fuzz_target!(").nth(1).unwrap();
        let function = call.split("::").nth(1).and_then(|rest| rest.split('(').next()).unwrap();
        assert!(
            smoke.contains(&format!("::{function}")) || properties.contains(&format!("::{function}")),
            "{file}: no test calls {function}"
        );
    }
}

#[test]
fn what_reads_bytes_from_elsewhere_has_a_fuzz_target() {
    let targets = files("fuzz/fuzz_targets");
    for needed in [
        "abac_policies",
        "audit_policy",
        "authorization_config",
        "cbor_decode",
        "cel_expression",
        "certificates",
        "continue_token",
        "field_selector",
        "header_blocks",
        "http1_requests",
        "json_decode",
        "json_patch",
        "label_selector",
        "merge_patch",
        "pem_blocks",
        "protobuf_decode",
        "remote_discovery",
        "remote_openapi",
        "request_info",
        "review_answer",
        "snapshot_read",
        "spdy_frames",
        "strategic_patch",
        "websocket_frames",
        "yaml_decode",
    ] {
        assert!(targets.contains(&format!("{needed}.rs")), "there is no fuzz target {needed}");
    }
}
