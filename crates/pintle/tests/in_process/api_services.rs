//! Tests the automatic registration of API services.

use crate::harness::{PATIENCE, Server, options};
use pintle::StorageBackend;
use pintle_machinery::{Value, json};
use std::time::{Duration, Instant};

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MERGE: &str = "Content-Type: application/merge-patch+json";

/// Reads an API service until it is as wanted; null when there is none.
async fn until(server: &Server, name: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = server.send(&format!("GET {API_SERVICES}/{name}")).await;
        let found = if answer.status == 200 { answer.json() } else { Value::Null };
        if is_wanted(&found) {
            return found;
        }
        assert!(Instant::now() < deadline, "{name}: {}", answer.text());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn sent(server: &Server, request: &str) {
    let answer = server.send(request).await;
    assert!(answer.status < 300, "{request}: {}", answer.text());
}

fn definition(versions: &[(&str, bool)]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(index, (name, served))| {
            json!({"name": name, "served": served, "storage": index == 0,
                "schema": {"openAPIV3Schema": {"type": "object"}}})
        })
        .collect();
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"},
            "versions": versions}})
}

#[tokio::test(flavor = "multi_thread")]
async fn what_definitions_serve_is_registered_and_kept() {
    let server = Server::start().await;
    sent(&server, &format!("POST {DEFINITIONS}\n\n{}", definition(&[("v1", true), ("v2", false)]))).await;
    let found = until(&server, "v1.example.com", Value::is_object).await;
    assert_eq!(
        found["spec"],
        json!({"group": "example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100})
    );
    assert_eq!(found["metadata"]["labels"], json!({"kube-aggregator.kubernetes.io/automanaged": "true"}));
    assert_eq!(found["metadata"]["managedFields"][0]["manager"], "kube-apiserver");
    let condition = &found["status"]["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["status"], &condition["reason"]),
        (&json!("Available"), &json!("True"), &json!("Local"))
    );

    // A changed API service is restored, and a deleted one created again.
    let change = json!({"spec": {"versionPriority": 7}});
    until(&server, "v1.batch", Value::is_object).await;
    sent(&server, &format!("PATCH {API_SERVICES}/v1.example.com\n{MERGE}\n\n{change}")).await;
    until(&server, "v1.example.com", |found| found["spec"]["versionPriority"] == 100).await;
    sent(&server, &format!("DELETE {API_SERVICES}/v1.example.com")).await;
    let uid = found["metadata"]["uid"].clone();
    until(&server, "v1.example.com", |found| found.is_object() && found["metadata"]["uid"] != uid).await;
    let broken = json!({"status": {"conditions": [{"type": "Available", "status": "False"}]}});
    sent(&server, &format!("PATCH {API_SERVICES}/v1.example.com/status\n{MERGE}\n\n{broken}")).await;
    until(&server, "v1.example.com", |found| found["status"]["conditions"][0]["reason"] == "Local").await;

    // API services are created and deleted with the definition.
    let other = json!({"spec": definition(&[("v1", true), ("v2", true)])["spec"]});
    sent(&server, &format!("PATCH {DEFINITIONS}/things.example.com\n{MERGE}\n\n{other}")).await;
    until(&server, "v2.example.com", Value::is_object).await;
    sent(&server, &format!("DELETE {DEFINITIONS}/things.example.com")).await;
    until(&server, "v1.example.com", Value::is_null).await;
    until(&server, "v2.example.com", Value::is_null).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn built_in_versions_are_registered_once_for_each_start() {
    let dir = tempfile::tempdir().unwrap();
    let embedded = || {
        let mut options = options(dir.path());
        options.storage_backend = StorageBackend::Embedded;
        options
    };
    let server = Server::start_in(embedded()).await;
    until(&server, "v1.apps", Value::is_object).await;
    sent(&server, &format!("DELETE {API_SERVICES}/v1.apps")).await;
    let change = json!({"spec": {"versionPriority": 7}});
    sent(&server, &format!("PATCH {API_SERVICES}/v1.batch\n{MERGE}\n\n{change}")).await;
    let own = json!({"metadata": {"name": "v9.apps", "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"}},
        "spec": {"group": "apps", "version": "v9", "groupPriorityMinimum": 1, "versionPriority": 1}});
    sent(&server, &format!("POST {API_SERVICES}\n\n{own}")).await;
    // Once the definition's API service exists, the others have been reconciled.
    sent(&server, &format!("POST {DEFINITIONS}\n\n{}", definition(&[("v1", true)]))).await;
    until(&server, "v1.example.com", Value::is_object).await;
    until(&server, "v1.apps", Value::is_null).await;
    until(&server, "v1.batch", |found| found["spec"]["versionPriority"] == 7).await;
    until(&server, "v9.apps", Value::is_object).await;
    server.stop().await;

    let server = Server::start_in(embedded()).await;
    until(&server, "v1.apps", Value::is_object).await;
    until(&server, "v1.batch", |found| found["spec"]["versionPriority"] == 15).await;
    until(&server, "v9.apps", Value::is_null).await;
    until(&server, "v1.example.com", Value::is_object).await;
}
