//! Rules of the repository, as tests.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    const DOCUMENTS: &[&str] = &[
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "COMPATIBILITY.md",
        "CONTRIBUTING.md",
        "README.md",
        "docs/snapshot.md",
        "docs/storage.md",
    ];

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
    }

    fn read(path: &str) -> String {
        fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn files(directory: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(root().join(directory))
            .unwrap_or_else(|error| panic!("{directory}: {error}"))
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_documents_link_to_exists() {
        let mut missing = Vec::new();
        let mut links = 0;
        for document in DOCUMENTS {
            let directory = root().join(document).parent().unwrap().to_path_buf();
            for link in read(document).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                if link.starts_with("http") || link.starts_with('#') {
                    continue;
                }
                links += 1;
                let file = link.split('#').next().unwrap();
                if !directory.join(file).exists() {
                    missing.push(format!("{document}: {link}"));
                }
            }
        }
        assert!(missing.is_empty(), "these do not exist: {missing:#?}");
        assert!(links > 40, "the links are no longer found: {links}");
    }

    #[test]
    fn every_crate_is_on_the_map() {
        let map = read("ARCHITECTURE.md");
        for name in files("crates") {
            assert!(map.contains(&format!("](crates/{name}/src/lib.rs)")), "ARCHITECTURE.md has no {name}");
        }
    }

    #[test]
    fn every_fuzz_target_is_declared_and_smoke_run() {
        let manifest = read("fuzz/Cargo.toml");
        let smoke = [
            "apiextensions/tests/properties/smoke.rs",
            "apiserver/tests/fuzz_smoke.rs",
            "audit/tests/fuzz_smoke.rs",
            "authorization/tests/fuzz_smoke.rs",
            "cel/tests/fuzz_smoke.rs",
            "machinery/tests/fuzz_smoke.rs",
            "machinery/tests/properties/smoke.rs",
            "service-account/tests/tokens/smoke.rs",
            "storage/tests/fuzz_smoke.rs",
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
            "cel_expression",
            "continue_token",
            "field_selector",
            "json_decode",
            "json_patch",
            "label_selector",
            "merge_patch",
            "protobuf_decode",
            "request_info",
            "snapshot_read",
            "strategic_patch",
            "yaml_decode",
        ] {
            assert!(targets.contains(&format!("{needed}.rs")), "there is no fuzz target {needed}");
        }
    }

    #[test]
    fn layers_do_not_know_those_above_them() {
        // The storage is below HTTP, too, but is a client of etcd and of key services, which speak gRPC.
        let client = ["hyper", "http.", "http ", "rustls."];
        let below_http = ["schema", "machinery", "registry", "storage", "cacher", "auth", "admission"];
        for name in below_http {
            let manifest = read(&format!("crates/{name}/Cargo.toml"));
            let dependencies = manifest.split("[dev-dependencies]").next().unwrap();
            for forbidden in
                ["hyper", "http.", "http ", "rustls.", "tower", "pintle-apiserver", "pintle-api."]
            {
                if name == "storage" && client.contains(&forbidden) {
                    continue;
                }
                // Credentials are headers; serving them is others' business.
                if name == "auth" && forbidden == "http." {
                    continue;
                }
                assert!(
                    !dependencies.lines().any(|line| line.starts_with(forbidden)),
                    "{name} must not depend on {forbidden}"
                );
            }
        }
        for name in ["schema", "machinery"] {
            let manifest = read(&format!("crates/{name}/Cargo.toml"));
            let dependencies = manifest.split("[dev-dependencies]").next().unwrap();
            assert!(!dependencies.contains("tokio"), "{name} must not depend on tokio");
        }
    }
}
