//! Compares the OpenAPI documents with the recorded ones.
//!
//! Everything but the descriptions, which have different texts, must be equal. CBOR and enums are not compared: the
//! recording was made with CBOR enabled and enums disabled, unlike the default. The other deliberate differences are in
//! `xtask/openapi-differences.txt`, one per line: the document, the path in it (which includes everything below), then
//! the reason.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use pintle_openapi::OpenApi;
use serde_json::Value;

use crate::shared;

const RECORDED: &str = "reference/openapi-v3";
const ALLOWED: &str = "xtask/openapi-differences.txt";
/// The maximum number of differences to print.
const SHOWN: usize = 60;

/// Fails when a document differs, is missing or is not in the recording.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let index: Value = parse(&shared::read(root, "reference/served-discovery/openapi-v3-index.json")?)?;
    let served: BTreeSet<&str> = index
        .get("paths")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str())
        .collect();
    let mut resources = pintle_api::resources(&pintle_api::Config::default());
    resources.extend(pintle_apiextensions::resources());
    resources.extend(pintle_aggregator::resources());
    let open_api = OpenApi::new(resources.into_iter().map(Arc::new).collect(), "v1.36.2");

    let mut differences = Vec::new();
    for key in open_api.v3_documents().keys().filter(|key| !served.contains(key.as_str())) {
        differences.push(format!("{key} / is not served by the reference"));
    }
    for key in served {
        let Some(document) = open_api.v3_document(key) else {
            differences.push(format!("{key} / is missing"));
            continue;
        };
        let file = format!("{RECORDED}/{}_openapi.json", key.replace('/', "__"));
        let expected = parse(&shared::read(root, &file)?)?;
        let actual = parse(&String::from_utf8_lossy(&document.content()))?;
        compare(key, "", &expected, &actual, &mut differences);
    }

    let allowed =
        std::fs::read_to_string(root.join(ALLOWED)).map_err(|error| format!("{ALLOWED}: {error}"))?;
    let allowed: Vec<&str> =
        allowed.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let mut unused: BTreeSet<&str> = allowed.iter().copied().collect();
    differences.retain(|difference| {
        let meant = allowed.iter().find(|line| is_meant(line, difference));
        meant.inspect(|line| _ = unused.remove(**line)).is_none()
    });
    differences.extend(unused.into_iter().map(|line| format!("{ALLOWED} has a line too many: {line}")));
    if differences.is_empty() {
        return Ok(());
    }
    for difference in differences.iter().take(SHOWN) {
        eprintln!("{difference}");
    }
    Err(format!("{} differences from the recorded OpenAPI documents", differences.len()))
}

fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Whether a line of the list of differences covers a difference: the same document, and the same path or one above it.
fn is_meant(line: &str, difference: &str) -> bool {
    let place = |text: &str| {
        let mut words = text.splitn(3, ' ').map(str::to_owned);
        (words.next().unwrap_or_default(), words.next().unwrap_or_default())
    };
    let ((document, path), (found_document, found_path)) = (place(line), place(difference));
    document == found_document && found_path.starts_with(&path)
}

/// Whether a member is not compared: descriptions, the server's version, media types of CBOR, and enums (outside of
/// schemas no field has this name).
fn is_not_compared(name: &str, value: &Value) -> bool {
    match name {
        "description" | "version" => value.is_string(),
        "enum" => value.is_array(),
        _ => name.contains("cbor"),
    }
}

fn compare(document: &str, path: &str, expected: &Value, actual: &Value, differences: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            for (name, value) in expected {
                let path = format!("{path}/{}", name.replace('/', "~1").replace(' ', "~2"));
                match actual.get(name) {
                    _ if is_not_compared(name, value) => {}
                    Some(other) => compare(document, &path, value, other, differences),
                    None => differences.push(format!("{document} {path} is missing, should be {value}")),
                }
            }
            for (name, value) in actual.iter().filter(|(name, _)| !expected.contains_key(*name)) {
                if !is_not_compared(name, value) {
                    differences.push(format!("{document} {path}/{name} should not be there: {value}"));
                }
            }
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                compare(document, &format!("{path}/{index}"), expected, actual, differences);
            }
        }
        _ if expected == actual => {}
        _ => differences.push(format!("{document} {path} should be {expected}, is {actual}")),
    }
}
