//! The objects that requests are made of: those that the recordings create, and the bytes of every kind in protobuf.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pintle_machinery::codec::yaml;
use serde_json::Value;

use super::case::{NAMESPACE, namespaced};
use crate::shared;

/// The objects of one resource that requests are made of.
const OF_RESOURCE: usize = 4;

/// An object that the reference created once.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// The path of its resource.
    pub(super) path: String,
    pub(super) resource: String,
    pub(super) object: Value,
}

/// An object of a kind, with every field set.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// The path of its resource.
    pub(super) path: String,
    /// The name of its kind, with group and version.
    pub(super) kind: String,
    pub(super) bytes: Vec<u8>,
}

/// The objects and messages of the shared folder.
pub(super) struct Corpus {
    pub(super) samples: Vec<Sample>,
    pub(super) messages: Vec<Message>,
}

impl Corpus {
    /// Reads the recordings and the facts of the shared folder.
    ///
    /// # Errors
    /// When a file cannot be read, or there is none.
    pub(super) fn read(root: &Path) -> Result<Corpus, String> {
        let shared = shared::directory(root);
        let samples = samples(&shared.join("conformance/scenarios"))?;
        let messages = messages(&shared.join("reference"))?;
        if samples.is_empty() || messages.is_empty() {
            return Err(format!("{}: no objects", shared.display()));
        }
        Ok(Corpus { samples, messages })
    }
}

fn samples(directory: &Path) -> Result<Vec<Sample>, String> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for folder in entries(directory)?.into_iter().filter(|path| path.is_dir()) {
        // A server with flags of its own may have other kinds.
        if folder.join("server-flags").exists() {
            continue;
        }
        for file in entries(&folder)?.into_iter().filter(|path| has_extension(path, "yaml")) {
            let golden: Value = parse(&file.with_extension("golden.json"))?;
            let text = read(&file)?;
            for document in String::from_utf8_lossy(&text).split("\n---\n") {
                // Keys that JSON does not have are used where a scenario is about them.
                let Ok(scenario) = yaml::to_json(document.as_bytes()) else { continue };
                let scenario: Value =
                    serde_json::from_slice(&scenario.json).map_err(|error| shown(&file, error))?;
                for sample in created(&scenario, &golden) {
                    let count = counts.entry(sample.resource.clone()).or_default();
                    if *count < OF_RESOURCE && seen.insert(sample.object.to_string()) {
                        *count += 1;
                        found.push(sample);
                    }
                }
            }
        }
    }
    Ok(found)
}

/// The objects that a scenario creates as an administrator.
fn created<'a>(scenario: &'a Value, golden: &'a Value) -> impl Iterator<Item = Sample> + 'a {
    let answers = golden.get(text_at(scenario, "name")).and_then(Value::as_array);
    let steps = scenario.get("steps").and_then(Value::as_array).into_iter().flatten().enumerate();
    let is_plain = scenario.get("webhooks").is_none() && scenario.get("peers").is_none();
    steps.filter(move |_| is_plain).filter_map(move |(index, step)| {
        let (method, target) = text_at(step, "req").split_once(' ')?;
        let object = step.get("body")?;
        let id = step.get("id").and_then(Value::as_str).map_or_else(|| format!("step{index}"), str::to_owned);
        let answer = answers?.iter().find(|answer| text_at(answer, "id") == id)?;
        let is_created = method == "POST" && answer.get("status").and_then(Value::as_u64) == Some(201);
        let is_named = object.pointer("/metadata/name").is_some_and(Value::is_string);
        if !is_created || !is_named || step.get("as").is_some() || step.to_string().contains("${") {
            return None;
        }
        let path = target.split_once('?').map_or(target, |(path, _)| path);
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let is_core = parts.first() == Some(&"api");
        let is_foreign = parts.get(1).is_some_and(|group| group.contains("example"));
        let (version, resource) = match (is_core, parts.as_slice()) {
            (true, [_, _, resource]) => (2, resource),
            (true, [_, _, "namespaces", _, resource]) => (2, resource),
            (false, [_, _, _, resource]) => (3, resource),
            (false, [_, _, _, "namespaces", _, resource]) => (3, resource),
            _ => return None,
        };
        if is_foreign || matches!(*resource, "customresourcedefinitions" | "apiservices") {
            return None;
        }
        let version = format!("/{}", parts.get(..version)?.join("/"));
        let path = match path.contains("/namespaces/") {
            true => namespaced(&version, resource),
            false => format!("{version}/{resource}"),
        };
        let object = serde_json::from_str(&object.to_string().replace("$NS", NAMESPACE)).ok()?;
        Some(Sample { path, resource: format!("{version}/{resource}"), object })
    })
}

fn messages(reference: &Path) -> Result<Vec<Message>, String> {
    let mut paths = BTreeMap::new();
    for file in entries(&reference.join("served-discovery"))? {
        let document: Value = parse(&file)?;
        let version = text_at(&document, "groupVersion");
        let base = if version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{version}") };
        for resource in document.get("resources").and_then(Value::as_array).into_iter().flatten() {
            let verbs = resource.get("verbs").and_then(Value::as_array);
            let name = text_at(resource, "name");
            // Kinds that are not stored cannot be created.
            let is_stored = |verb| verbs.is_some_and(|verbs| verbs.contains(&Value::from(verb)));
            if name.contains('/') || !is_stored("create") || !is_stored("list") {
                continue;
            }
            let path = match resource.get("namespaced") == Some(&Value::Bool(true)) {
                true => namespaced(&base, name),
                false => format!("{base}/{name}"),
            };
            paths.insert((version.to_owned(), text_at(resource, "kind").to_owned()), path);
        }
    }
    let mut found = Vec::new();
    for file in
        entries(&reference.join("api-roundtrip"))?.into_iter().filter(|path| has_extension(path, "pb"))
    {
        let object: Value = parse(&file.with_extension("json"))?;
        let kind = (text_at(&object, "apiVersion").to_owned(), text_at(&object, "kind").to_owned());
        if let Some(path) = paths.get(&kind) {
            let kind = format!("{} {}", kind.0, kind.1);
            found.push(Message { path: path.clone(), kind, bytes: read(&file)? });
        }
    }
    Ok(found)
}

fn text_at<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension == wanted)
}

/// The entries of a directory, sorted.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(directory).map_err(|error| shown(directory, error))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| shown(path, error))
}

fn parse(path: &Path) -> Result<Value, String> {
    serde_json::from_slice(&read(path)?).map_err(|error| shown(path, error))
}

fn shown(path: &Path, error: impl std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_objects_that_a_scenario_creates_are_samples() {
        let scenario = json!({"name": "s", "steps": [
            {"id": "a", "req": "POST /api/v1/namespaces/$NS/configmaps?dryRun=All", "body": {"metadata": {"name": "a", "namespace": "$NS"}}},
            {"req": "POST /apis/storage.k8s.io/v1/storageclasses", "body": {"metadata": {"name": "b"}}},
            {"id": "refused", "req": "POST /api/v1/nodes", "body": {"metadata": {"name": "c"}}},
            {"id": "user", "as": "joe", "req": "POST /api/v1/nodes", "body": {"metadata": {"name": "d"}}},
            {"id": "eviction", "req": "POST /api/v1/namespaces/$NS/pods/p/eviction", "body": {"metadata": {"name": "e"}}},
        ]});
        let answer = |id: &str, status: u16| json!({"id": id, "status": status});
        let answers = [
            answer("a", 201),
            answer("step1", 201),
            answer("refused", 422),
            answer("user", 201),
            answer("eviction", 201),
        ];
        let golden = json!({"s": answers});
        let found: Vec<_> = created(&scenario, &golden).map(|sample| (sample.path, sample.object)).collect();
        assert_eq!(
            found,
            [
                (
                    "/api/v1/namespaces/differential/configmaps".to_owned(),
                    json!({"metadata": {"name": "a", "namespace": "differential"}})
                ),
                ("/apis/storage.k8s.io/v1/storageclasses".to_owned(), json!({"metadata": {"name": "b"}})),
            ]
        );
    }
}
