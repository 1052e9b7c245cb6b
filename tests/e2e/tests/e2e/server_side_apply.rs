//! Tests server-side apply with kubectl: a first apply, a conflict, a diff, and the migration from client-side apply to
//! server-side apply and back.

use crate::Result;
use pintle_e2e::{Cli, start};
use serde_json::Value;

const SETTINGS: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, labels: {app: web}}\n\
                        data: {colour: red, size: small}\n";

fn blue() -> String {
    SETTINGS.replace("red", "blue")
}

/// The managers of an object, with their operations and the keys of its data that they own.
fn owners(kubectl: &Cli<'_>) -> Result<Vec<(String, String, Vec<String>)>> {
    let object = kubectl.json(&["get", "configmap", "settings", "--show-managed-fields"])?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut owners: Vec<_> = object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            let fields = entry["fieldsV1"]["f:data"].as_object();
            let fields = fields.into_iter().flat_map(|fields| fields.keys().cloned()).collect();
            (text(&entry["manager"]), text(&entry["operation"]), fields)
        })
        .collect();
    owners.sort();
    Ok(owners)
}

fn owner(manager: &str, operation: &str, fields: &[&str]) -> (String, String, Vec<String>) {
    (manager.to_owned(), operation.to_owned(), fields.iter().map(|field| (*field).to_owned()).collect())
}

#[test]
fn two_managers_quarrel_and_one_is_forced_out() -> Result {
    let server = start()?;
    let kubectl = Cli::kubectl(&server)?;
    let apply = |args: &[&str], manifest: &str| {
        let args: Vec<&str> = ["apply", "--server-side", "-f", "-"].iter().chain(args).copied().collect();
        kubectl.feed(&args, manifest)
    };
    assert_eq!(apply(&[], SETTINGS)?, "configmap/settings serverside-applied\n");
    let version = kubectl.json(&["get", "configmap", "settings"])?["metadata"]["resourceVersion"].clone();
    apply(&[], SETTINGS)?;
    assert_eq!(kubectl.json(&["get", "configmap", "settings"])?["metadata"]["resourceVersion"], version);

    let file = kubectl.file("blue.yaml", &blue())?;
    let refusal = kubectl.fails(&["apply", "--server-side", "--field-manager=painter", "-f", &file])?;
    assert!(
        refusal.starts_with("error: Apply failed with 1 conflict: conflict with \"kubectl\": .data.colour\n"),
        "{refusal}"
    );
    assert!(refusal.contains("--force-conflicts"), "{refusal}");
    assert_eq!(owners(&kubectl)?, [owner("kubectl", "Apply", &["f:colour", "f:size"])]);

    apply(&["--field-manager=painter", "--force-conflicts"], &blue())?;
    let shared = [owner("kubectl", "Apply", &["f:size"]), owner("painter", "Apply", &["f:colour", "f:size"])];
    assert_eq!(owners(&kubectl)?, shared);

    // A manager that stops applying a field removes it only if no other manager owns it.
    let nothing = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n";
    apply(&["--field-manager=painter"], nothing)?;
    let data = kubectl.json(&["get", "configmap", "settings"])?["data"].clone();
    assert_eq!(data, serde_json::json!({"size": "small"}));
    assert_eq!(owners(&kubectl)?, [owner("kubectl", "Apply", &["f:size"])]);
    Ok(())
}

#[test]
fn a_diff_tells_of_changes_and_of_conflicts() -> Result {
    let server = start()?;
    let kubectl = Cli::kubectl(&server)?;
    kubectl.feed(&["apply", "--server-side", "-f", "-"], SETTINGS)?;
    let file = kubectl.file("blue.yaml", &blue())?;
    let own = kubectl.command(&["diff", "--server-side", "-f", &file]).output()?;
    let text = String::from_utf8_lossy(&own.stdout);
    assert_eq!(own.status.code(), Some(1), "{text}");
    assert!(text.contains("-  colour: red\n+  colour: blue\n"), "{text}");

    let conflict =
        kubectl.command(&["diff", "--server-side", "--field-manager=painter", "-f", &file]).output()?;
    let text = String::from_utf8_lossy(&conflict.stderr);
    assert_eq!(conflict.status.code(), Some(2), "{text}");
    assert!(text.contains("conflict with \"kubectl\": .data.colour"), "{text}");

    kubectl.run(&["apply", "--server-side", "--dry-run=server", "-f", &file])?;
    assert_eq!(kubectl.json(&["get", "configmap", "settings"])?["data"]["colour"], "red");
    Ok(())
}

#[test]
fn what_was_applied_from_the_client_moves_to_the_server() -> Result {
    let server = start()?;
    let kubectl = Cli::kubectl(&server)?;
    kubectl.feed(&["apply", "-f", "-"], SETTINGS)?;
    let last = |kubectl: &Cli<'_>| kubectl.run(&["apply", "view-last-applied", "configmap/settings"]);
    assert!(last(&kubectl)?.contains("  colour: red\n"));
    // kubectl moves the fields to its own server-side entry, and the server keeps its annotation up to date.
    kubectl.feed(&["apply", "--server-side", "-f", "-"], &blue())?;
    assert!(last(&kubectl)?.contains("  colour: blue\n"));
    let managers =
        [owner("kubectl", "Apply", &["f:colour", "f:size"]), owner("kubectl-last-applied", "Apply", &[])];
    assert_eq!(owners(&kubectl)?, managers);
    // And back: a client-side apply finds the last applied configuration.
    let without = SETTINGS.replace(", size: small", "");
    assert_eq!(kubectl.feed(&["apply", "-f", "-"], &without)?, "configmap/settings configured\n");
    let data = kubectl.json(&["get", "configmap", "settings"])?["data"].clone();
    assert_eq!(data, serde_json::json!({"colour": "red"}));
    Ok(())
}
