//! Converts every recorded object between its JSON, YAML and protobuf forms.
//!
//! `reference/api-roundtrip/` beside the project has one object of each kind with every field set. Some of
//! them are committed and tested by `cargo test`; this task converts all of them.

use std::path::Path;

use pintle_machinery::codec::{json, protobuf, yaml};
use pintle_schema::{Schema, SchemaRef};

use crate::shared;

pub(crate) fn run(root: &Path) -> Result<(), String> {
    let directory = shared::directory(root).join("reference/api-roundtrip");
    let entries =
        std::fs::read_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut checked = 0;
    let mut failures = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        checked += 1;
        if let Err(error) = check(&path, name) {
            failures.push(format!("{name}: {error}"));
        }
    }
    if checked == 0 {
        return Err(format!("{}: no objects", directory.display()));
    }
    if !failures.is_empty() {
        return Err(format!("{} of {checked} objects differ:\n{}", failures.len(), failures.join("\n")));
    }
    println!("{checked} objects convert exactly");
    Ok(())
}

fn schema(name: &str) -> Option<SchemaRef<'static>> {
    let (rest, kind) = name.rsplit_once('.')?;
    let (group, version) = rest.rsplit_once('.')?;
    Schema::builtin().by_kind(if group == "core" { "" } else { group }, version, kind)
}

fn check(path: &Path, name: &str) -> Result<(), String> {
    let schema = schema(name).ok_or("no such kind")?;
    let read = |extension: &str| {
        std::fs::read(path.with_extension(extension)).map_err(|error| format!("{extension}: {error}"))
    };
    let golden_json = read("json")?;
    let golden_protobuf = read("pb")?;
    let golden_yaml = read("yaml")?;
    let trees = [
        ("json", json::decode(&golden_json, schema)),
        ("protobuf", protobuf::decode(&golden_protobuf, schema)),
        ("YAML", yaml::decode(&golden_yaml, schema)),
    ];
    for (form, decoded) in trees {
        let decoded = decoded.map_err(|error| format!("{form} does not decode: {error}"))?;
        if let Some(problem) = decoded.problems.first() {
            return Err(format!("{form}: {problem}"));
        }
        same("JSON", form, &json::encode(&decoded.value, schema), &compact(&golden_json))?;
        let message = protobuf::encode(&decoded.value, schema).ok_or("no protobuf form")?;
        same("protobuf", form, &message, &golden_protobuf)?;
        same("YAML", form, &yaml::encode(&decoded.value, schema), &golden_yaml)?;
    }
    Ok(())
}

/// The JSON without the white space between its tokens.
fn compact(json: &[u8]) -> Vec<u8> {
    let mut in_string = false;
    let mut escaped = false;
    json.iter()
        .copied()
        .filter(|&byte| {
            let keep = in_string || !byte.is_ascii_whitespace();
            in_string ^= byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            keep
        })
        .collect()
}

fn same(form: &str, source: &str, actual: &[u8], expected: &[u8]) -> Result<(), String> {
    if actual == expected {
        return Ok(());
    }
    let at = actual.iter().zip(expected).take_while(|(a, b)| a == b).count();
    let around = |bytes: &[u8]| {
        let part = bytes.get(at.saturating_sub(60)..(at + 60).min(bytes.len())).unwrap_or_default();
        String::from_utf8_lossy(part).into_owned()
    };
    Err(format!(
        "{form} from {source} differs at byte {at}:\n  {:?}\n  {:?}",
        around(actual),
        around(expected)
    ))
}
