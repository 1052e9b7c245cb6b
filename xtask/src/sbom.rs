//! Makes the bill of materials of the server: CycloneDX 1.5 (<https://cyclonedx.org/docs/1.5/json/>) from cargo's metadata.
//!
//! The document has no time and no serial number, so that the same sources give the same document.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::task;

const SERVER: &str = "pintle";

/// The bill of the packages that the server's binary is built of for a target.
///
/// # Errors
/// When cargo does not tell the packages.
pub(crate) fn bill(root: &Path, target: &str) -> Result<String, String> {
    let mut cargo = task::cargo(root);
    cargo.args(["metadata", "--format-version=1", "--locked", "--filter-platform", target]);
    let metadata: Value =
        serde_json::from_str(&task::output(&mut cargo)?).map_err(|error| error.to_string())?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).map_err(|error| error.to_string())?;
    let bill = document(&metadata, &checksums(&lock))?;
    serde_json::to_string_pretty(&bill).map_err(|error| error.to_string())
}

fn document(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> Result<Value, String> {
    let packages: BTreeMap<&str, &Value> =
        items(metadata, "/packages").map(|package| (text(package, "/id"), package)).collect();
    let nodes: BTreeMap<&str, &Value> =
        items(metadata, "/resolve/nodes").map(|node| (text(node, "/id"), node)).collect();
    let server = packages.values().find(|package| text(package, "/name") == SERVER);
    let server = server.ok_or("there is no package of the server")?;
    let mut reached = BTreeSet::new();
    let mut open = vec![text(server, "/id")];
    while let Some(id) = open.pop() {
        if reached.insert(id) {
            open.extend(nodes.get(id).into_iter().flat_map(|node| needed(node)));
        }
    }
    let reference = |id: &str| packages.get(id).map(|package| url(package)).unwrap_or_default();
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for id in &reached {
        let Some(package) = packages.get(id) else { continue };
        if text(package, "/name") != SERVER {
            components.push(component(package, "library", checksums));
        }
        let mut depends_on: Vec<String> =
            nodes.get(id).into_iter().flat_map(|node| needed(node)).map(reference).collect();
        depends_on.sort_unstable();
        depends_on.dedup();
        dependencies.push(json!({"ref": url(package), "dependsOn": depends_on}));
    }
    let key = |value: &Value, name: &str| value.get(name).map(Value::to_string);
    components.sort_by_key(|component| key(component, "bom-ref"));
    dependencies.sort_by_key(|dependency| key(dependency, "ref"));
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(server, "application", checksums)},
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(package: &Value, kind: &str, checksums: &BTreeMap<(String, String), String>) -> Value {
    let (name, version) = (text(package, "/name"), text(package, "/version"));
    let mut component = json!({"type": kind, "bom-ref": url(package), "name": name, "version": version, "purl": url(package)});
    if let Some(members) = component.as_object_mut() {
        if let Some(license) = package.pointer("/license").and_then(Value::as_str) {
            // Older packages separate alternatives by a slash.
            let expression = license.replace('/', " OR ").replace("  ", " ");
            members.insert("licenses".to_owned(), json!([{"expression": expression}]));
        }
        if let Some(checksum) = checksums.get(&(name.to_owned(), version.to_owned())) {
            members.insert("hashes".to_owned(), json!([{"alg": "SHA-256", "content": checksum}]));
        }
    }
    component
}

/// The packages that a node needs to be built and to run: not those of its tests.
fn needed(node: &Value) -> impl Iterator<Item = &str> {
    let is_needed =
        |dependency: &&Value| items(dependency, "/dep_kinds").any(|kind| text(kind, "/kind") != "dev");
    items(node, "/deps").filter(is_needed).map(|dependency| text(dependency, "/pkg"))
}

fn url(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(package, "/name"), text(package, "/version"))
}

/// The checksums in a lock file, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |package: &str, key: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    let packages = lock.split("[[package]]").filter_map(|package| {
        Some(((value(package, "name")?, value(package, "version")?), value(package, "checksum")?))
    });
    packages.collect()
}

fn items<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bill_has_what_the_server_is_built_of() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let bill: Value = serde_json::from_str(&bill(root, crate::dist::HOST).unwrap()).unwrap();
        let component =
            |name: &str| items(&bill, "/components").find(|component| text(component, "/name") == name);
        let tokio = component("tokio").unwrap();
        assert_eq!(text(tokio, "/licenses/0/expression"), "MIT");
        assert_eq!(text(tokio, "/hashes/0/content").len(), 64);
        assert!(component("pintle-machinery").is_some());
        assert!(component("criterion").is_none(), "it is only tested with");
        let names: BTreeSet<&str> =
            items(&bill, "/components").map(|component| text(component, "/bom-ref")).collect();
        assert_eq!(names.len() + 1, items(&bill, "/dependencies").count());
        let listed = |name: &str| names.contains(name) || name.starts_with("pkg:cargo/pintle@");
        for dependency in items(&bill, "/dependencies") {
            assert!(listed(text(dependency, "/ref")));
            assert!(items(dependency, "/dependsOn").all(|name| listed(name.as_str().unwrap())));
        }
    }
}
