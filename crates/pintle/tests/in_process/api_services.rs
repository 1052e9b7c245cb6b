//! Tests the automatic registration of API services, and the metrics of those of other servers.

use crate::{
    harness::{PATIENCE, Server, options},
    peers::Https,
};
use pintle::StorageBackend;
use pintle_machinery::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

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

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_reach_no_extension_server_count_as_ended_early_and_broken_ones_do_not() {
    let server = Server::start().await;
    let extension = Https::named(
        &["localhost"],
        Arc::new(|_, path, _| {
            assert!(!path.contains("/things"), "the connection breaks off");
            let list =
                json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": path, "resources": []});
            (200, list.to_string())
        }),
    )
    .await;
    let port: u16 = extension.url.rsplit(':').next().unwrap().parse().unwrap();
    let service = json!({"metadata": {"name": "extension"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}});
    sent(&server, &format!("POST /api/v1/namespaces/default/services\n\n{service}")).await;
    for (version, name) in [("v1", "extension"), ("v2", "missing")] {
        let api_service = json!({"metadata": {"name": format!("{version}.a.example.com")}, "spec": {
            "group": "a.example.com", "version": version, "groupPriorityMinimum": 1, "versionPriority": 1,
            "insecureSkipTLSVerify": true, "service": {"namespace": "default", "name": name, "port": port}}});
        sent(&server, &format!("POST {API_SERVICES}\n\n{api_service}")).await;
    }
    until(&server, "v1.a.example.com", |found| found["status"]["conditions"][0]["status"] == "True").await;
    let early = async || {
        let metrics = server.send("GET /metrics").await;
        let early = |line: &&str| {
            line.starts_with("apiserver_request_terminations_total")
                && line.contains("component=\"aggregator\"")
                && line.contains("verb=\"LIST\"")
        };
        let counts = metrics.text().lines().filter(early).map(|line| line.rsplit(' ').next().unwrap());
        counts.map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    // The handler learns of the status a little later.
    let deadline = Instant::now() + PATIENCE;
    while server.send("GET /apis/a.example.com/v1").await.status != 200 {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let broken = server.send("GET /apis/a.example.com/v1/things").await;
    assert_eq!((broken.status, broken.text()), (503, "error trying to reach service: EOF\n"));
    assert_eq!(early().await, Vec::<String>::new());
    let refused = server.send("GET /apis/a.example.com/v2/things").await;
    assert_eq!((refused.status, refused.text()), (503, "service unavailable\n"));
    assert_eq!(early().await, ["1"]);
}
