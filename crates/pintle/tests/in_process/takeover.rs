//! Tests that a store written by kube-apiserver is served unchanged.
//!
//! The fixture has objects of most kinds, created with kubectl at kube-apiserver v1.36.2: each key and value from its
//! etcd, with the server's response to a GET.

use crate::harness::{Server, options};
use base64::{Engine, engine::general_purpose::STANDARD};
use pintle::{Options, StorageBackend, StorageMediaType};
use pintle_storage::{EmbeddedOptions, EmbeddedStorage, Key, Storage};
use std::path::Path;

struct Row {
    path: String,
    key: Key,
    stored: Vec<u8>,
    served: String,
}

fn fixture() -> Vec<Row> {
    let text = include_str!("../fixtures/kube-apiserver-1.36.2.json");
    let rows: Vec<pintle_machinery::Value> = serde_json::from_str(text).unwrap();
    let text = |row: &pintle_machinery::Value, member: &str| row[member].as_str().unwrap().to_owned();
    rows.iter()
        .map(|row| Row {
            path: text(row, "path"),
            key: Key::new(text(row, "key")),
            stored: STANDARD.decode(text(row, "stored")).unwrap(),
            served: text(row, "served"),
        })
        .collect()
}

/// A server on a store with the fixture.
async fn start(dir: &Path, rows: &[Row]) -> Server {
    let storage = EmbeddedStorage::open(dir.join("store"), EmbeddedOptions::default()).unwrap();
    for row in rows {
        storage.create(&row.key, row.stored.clone().into(), None).await.unwrap();
    }
    storage.close().await.unwrap();
    Server::start_in(Options {
        storage_backend: StorageBackend::Embedded,
        storage_media_type: Some(StorageMediaType::Protobuf),
        ..options(dir)
    })
    .await
}

/// The response without its resourceVersion.
fn without_revision(answer: &str) -> String {
    const MEMBER: &str = "\"resourceVersion\":\"";
    let (head, tail) = answer.split_once(MEMBER).unwrap();
    let (_, tail) = tail.split_once('"').unwrap();
    format!("{head}{tail}")
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_kube_apiserver_stored_are_served_as_it_serves_them() {
    let (dir, rows) = (tempfile::tempdir().unwrap(), fixture());
    let server = start(dir.path(), &rows).await;
    for Row { path, served, .. } in rows.iter().filter(|row| !row.path.is_empty()) {
        let answer = server.send(&format!("GET {path}")).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(without_revision(answer.text()), without_revision(served), "{path}");
    }
    server.stop().await;
}

/// An update without a change is written if it would store other bytes. No write therefore means that the bytes equal
/// kube-apiserver's.
#[tokio::test(flavor = "multi_thread")]
async fn objects_are_stored_as_kube_apiserver_stores_them() {
    /// Objects that kube-apiserver stores differently on create than it returns them. A claim's phase and a job's
    /// labels are defaulted on read, and so stored with the next update, by either server; a traffic policy without
    /// effect is omitted in responses only.
    const SHOWN_OTHERWISE: [&str; 3] = [
        "/api/v1/namespaces/harbour/persistentvolumeclaims/cargo",
        "/api/v1/namespaces/harbour/services/elsewhere",
        "/apis/batch/v1/namespaces/harbour/jobs/dredge",
    ];
    let (dir, rows) = (tempfile::tempdir().unwrap(), fixture());
    let server = start(dir.path(), &rows).await;
    let storage = server.storage();
    let mut rewritten = Vec::new();
    for Row { path, key, stored, .. } in rows.iter().filter(|row| !row.path.is_empty()) {
        let headers = [("Content-Type", "application/merge-patch+json")];
        let answer = server.exchange("PATCH", path, &headers, "{}").await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let now = storage.get(key).await.unwrap().kv.unwrap().value;
        if now.bytes != *stored {
            println!("{path}:\n{}\n{}", stored.escape_ascii(), now.escape_ascii());
            rewritten.push(path.as_str());
        }
    }
    rewritten.sort_unstable();
    assert_eq!(rewritten, SHOWN_OTHERWISE);
    // The server's own records are unchanged as well, after the server has written them.
    let node_ports = rows.iter().find(|row| row.path.is_empty()).unwrap();
    let service = |name: &str, port: u32| {
        format!(
            "POST /api/v1/namespaces/default/services\n\n{{\"metadata\":{{\"name\":\"{name}\"}},\
             \"spec\":{{\"type\":\"NodePort\",\"ports\":[{{\"port\":80,\"nodePort\":{port}}}]}}}}"
        )
    };
    let refused = server.send(&service("taken", 30080)).await;
    assert_eq!(refused.status, 422, "kube-apiserver gave the port away: {}", refused.text());
    let created = server.send(&service("free", 30081)).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let changed = storage.get(&node_ports.key).await.unwrap().kv.unwrap().value;
    assert_ne!(changed.bytes, node_ports.stored);
    let deleted = server.send("DELETE /api/v1/namespaces/default/services/free").await;
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    let now = storage.get(&node_ports.key).await.unwrap().kv.unwrap().value;
    assert_eq!(now.bytes, node_ports.stored, "{}", now.escape_ascii());
    server.stop().await;
}
