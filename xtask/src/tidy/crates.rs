//! Checks that the map in `ARCHITECTURE.md` has every crate, and that each crate depends only on crates above it.

use super::{files, files_below, read};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn every_crate_is_on_the_map() {
    let map = read("ARCHITECTURE.md");
    for name in files("crates") {
        assert!(map.contains(&format!("](crates/{name}/src/lib.rs)")), "ARCHITECTURE.md has no {name}");
    }
}

/// Checks the order of the map and the order of the workspace's manifest.
#[test]
fn crates_depend_on_those_above_them_only() {
    let mut dependencies = BTreeMap::new();
    for name in files("crates") {
        dependencies.insert(name.clone(), dependencies_of(&name));
    }
    let map = read("ARCHITECTURE.md");
    let map: Vec<&str> = map.lines().filter(|line| line.starts_with("| [`")).collect();
    let map =
        map.iter().flat_map(|row| row.split("](crates/").skip(1)).map(|rest| rest.split('/').next().unwrap());
    let manifest = read("Cargo.toml");
    let manifest =
        manifest.lines().filter_map(|line| line.split("path = \"crates/").nth(1)?.split('"').next());
    for (file, order) in [("ARCHITECTURE.md", map.collect::<Vec<_>>()), ("Cargo.toml", manifest.collect())] {
        let mut wrong = Vec::new();
        for (place, name) in order.iter().enumerate() {
            for used in dependencies.get(*name).unwrap_or_else(|| panic!("{file}: there is no crate {name}"))
            {
                if !order.iter().take(place).any(|above| above == used) {
                    wrong.push(format!("{name} depends on {used}"));
                }
            }
        }
        assert_eq!(order.len(), dependencies.len(), "{file} must name each crate once: {order:?}");
        assert!(wrong.is_empty(), "each crate knows only those above it in {file}, but {wrong:#?}");
    }
}

/// The crates of `crates/` that a crate depends on, without its dev-dependencies.
fn dependencies_of(name: &str) -> Vec<String> {
    let manifest = read(&format!("crates/{name}/Cargo.toml"));
    let mut is_counted = false;
    let mut dependencies = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_counted = line.contains("dependencies") && !line.contains("dev-dependencies");
        } else if let Some(rest) = line.strip_prefix("pintle-").filter(|_| is_counted) {
            let used = rest.split(['.', ' ', '=']).next().unwrap();
            if files("crates").iter().any(|name| name == used) {
                dependencies.push(used.to_owned());
            }
        }
    }
    dependencies
}

/// Only tests may use the others, which are dev-dependencies.
#[test]
fn the_code_of_crates_uses_their_dependencies() {
    let mut unused = Vec::new();
    for name in files("crates") {
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        let Some((_, section)) = manifest.split_once("[dependencies]\n") else { continue };
        let code: String =
            files_below(&format!("crates/{name}/src"), ".rs").iter().map(|file| read(file)).collect();
        let words: BTreeSet<&str> = code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        for line in section.lines().take_while(|line| !line.starts_with('[')).filter(|line| !line.is_empty())
        {
            let dependency = line.split(['.', ' ']).next().unwrap();
            // The one whose library has another name.
            let library = dependency.strip_prefix("rustls-").filter(|name| *name == "webpki");
            if !words.contains(library.unwrap_or(dependency).replace('-', "_").as_str()) {
                unused.push(format!("{name}: {dependency}"));
            }
        }
    }
    assert!(unused.is_empty(), "unused, or dev-dependencies: {unused:#?}");
}

#[test]
fn layers_do_not_know_those_above_them() {
    // The storage is below HTTP, too, but it is a client of etcd, which uses gRPC.
    let client = ["hyper", "http.", "http ", "rustls."];
    let below_http = ["schema", "machinery", "registry", "storage", "cacher", "auth", "admission"];
    for name in below_http {
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        let dependencies = manifest.split("[dev-dependencies]").next().unwrap();
        for forbidden in ["hyper", "http.", "http ", "rustls.", "tower", "pintle-apiserver", "pintle-api."] {
            if name == "storage" && client.contains(&forbidden) {
                continue;
            }
            // Credentials are headers; this crate uses the types of headers and serves no HTTP.
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
