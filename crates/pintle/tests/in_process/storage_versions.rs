//! Tests the publication of storage versions (gate `StorageVersionAPI`), and the refusal of writes before it.

use crate::harness::{PATIENCE, Server, options};
use pintle::{Options, StorageBackend};
use pintle_machinery::{Value, json};
use pintle_storage::Key;
use std::{
    path::Path,
    time::{Duration, Instant},
};

const STORAGE_VERSIONS: &str = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The options of a server of this host that publishes its storage versions.
fn publishing(dir: &Path, hostname: &str) -> Options {
    let mut options = options(dir);
    options.storage_backend = StorageBackend::Embedded;
    options.hostname = Some(hostname.to_owned());
    options.features.gates.add("StorageVersionAPI=true");
    options.runtime_config.add("internal.apiserver.k8s.io/v1alpha1=true");
    options
}

fn words(value: &Value) -> String {
    let words: Vec<&str> = value.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    words.join(" ")
}

/// The published versions: compared with those of kube-apiserver v1.36.2, which publishes the same.
#[tokio::test(flavor = "multi_thread")]
async fn the_versions_of_all_resources_are_published() {
    let server = Server::start_with(|options| {
        let publishing = publishing(&options.data_dir, "one");
        *options = Options { storage_backend: StorageBackend::Memory, ..publishing };
        options.runtime_config.add("api/all=true");
    })
    .await;
    let list = server.send(&format!("GET {STORAGE_VERSIONS}")).await.json();
    let row = |object: &Value| {
        let status = &object["status"];
        let entry = &status["storageVersions"][0];
        assert_eq!(status["commonEncodingVersion"], entry["encodingVersion"]);
        assert_eq!(object["metadata"]["managedFields"], Value::Null);
        format!(
            "{}: {} | {} | {}\n",
            object["metadata"]["name"].as_str().unwrap(),
            entry["encodingVersion"].as_str().unwrap(),
            words(&entry["decodableVersions"]),
            words(&entry["servedVersions"]),
        )
    };
    let rows: String = list["items"].as_array().unwrap().iter().map(row).collect();
    insta::assert_snapshot!(rows);
    assert!(server.send("GET /readyz?verbose").await.text().contains(
        "[+]poststarthook/built-in-resources-storage-version-updater ok\n[+]poststarthook/kube-apiserver-autoregistration ok\n"
    ));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_server_has_an_entry_that_stays_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let of_pods = async |hostname: &str| {
        let server = Server::start_in(publishing(dir.path(), hostname)).await;
        let pods = server.send(&format!("GET {STORAGE_VERSIONS}/core.pods")).await;
        server.stop().await;
        pods
    };
    let one = of_pods("one").await;
    let condition = &one.json()["status"]["conditions"][0];
    assert_eq!(condition["type"], "AllEncodingVersionsEqual");
    assert_eq!(
        (&condition["status"], &condition["reason"]),
        (&json!("True"), &json!("CommonEncodingVersionSet"))
    );
    assert_eq!(condition["message"], "Common encoding version set");
    let again = of_pods("one").await;
    assert_eq!(again.text(), one.text(), "a second start writes nothing");
    let both = of_pods("two").await.json();
    let servers = both["status"]["storageVersions"].as_array().unwrap().clone();
    assert_eq!(servers.len(), 2);
    assert_eq!(servers[0], one.json()["status"]["storageVersions"][0]);
    assert_ne!(servers[0]["apiServerID"], servers[1]["apiServerID"]);
    assert_eq!(&both["status"]["conditions"][0], condition);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_whose_version_cannot_be_published_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let before = Server::start_in(publishing(dir.path(), "one")).await;
    // An entry that no client could write, so that every update of the object is invalid.
    let object = json!({
        "kind": "StorageVersion", "apiVersion": "internal.apiserver.k8s.io/v1alpha1",
        "metadata": {"name": "core.configmaps", "uid": "u"}, "spec": {},
        "status": {"storageVersions": [{"apiServerID": "other", "encodingVersion": "v2", "decodableVersions": ["v1"]}]},
    });
    let key = Key::new("/registry/storageversions/core.configmaps");
    let storage = before.storage();
    let stored = storage.get(&key).await.unwrap().kv.unwrap();
    storage.update(&key, object.to_string().into(), stored.mod_revision, None).await.unwrap();
    before.stop().await;

    let server = Server::start_in(publishing(dir.path(), "one")).await;
    let create = format!(r#"POST {CONFIG_MAPS}{}{{"metadata":{{"name":"a"}}}}"#, "\n\n");
    let refused = server.send(&create).await;
    assert_eq!(refused.status, 503);
    let message = "wait for storage version registration to complete for resource: configmaps, last seen error: \
                   StorageVersion.internal.apiserver.k8s.io \"core.configmaps\" is invalid: \
                   status.storageVersions[0].decodableVersions: Invalid value: [\"v1\"]: decodableVersions must include \
                   encodingVersion v2";
    assert_eq!(
        refused.json(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": "ServiceUnavailable", "code": 503,
        })
    );
    let check = async |request: &str, status: u16| {
        let answer = server.send(request).await;
        assert_eq!(answer.status, status, "{request}: {}", answer.text());
    };
    check(&format!("DELETE {CONFIG_MAPS}"), 503).await;
    check(&format!("GET {CONFIG_MAPS}"), 200).await;
    check("GET /livez/poststarthook/built-in-resources-storage-version-updater", 500).await;
    check(&create.replace("configmaps", "secrets"), 201).await;

    check(&format!("DELETE {STORAGE_VERSIONS}/core.configmaps"), 200).await;
    let begun = Instant::now();
    while server.send("GET /readyz").await.status != 200 {
        assert!(begun.elapsed() < PATIENCE, "the version is still not published");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    check(&create, 201).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_published_while_the_gate_is_closed_or_the_api_is_off() {
    let server = Server::start_with(|options| {
        options.runtime_config.add("internal.apiserver.k8s.io/v1alpha1=true");
    })
    .await;
    let list = server.send(&format!("GET {STORAGE_VERSIONS}")).await.json();
    assert_eq!(list["items"], json!([]));
    assert!(!server.send("GET /readyz?verbose").await.text().contains("storage-version-updater"));
    server.stop().await;

    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path());
    options.features.gates.add("StorageVersionAPI=true");
    let Err(error) = pintle::start(options).await else { panic!("no write would ever be accepted") };
    assert_eq!(
        error.to_string(),
        "the feature gate StorageVersionAPI requires storageversions.internal.apiserver.k8s.io to be served: \
         --runtime-config=internal.apiserver.k8s.io/v1alpha1=true"
    );
}

/// kube-apiserver reads both versions of an API service, which differ only in their names.
#[tokio::test(flavor = "multi_thread")]
async fn an_api_service_in_its_former_storage_version_is_read() {
    let server = Server::start().await;
    let key = Key::new("/registry/apiregistration.k8s.io/apiservices/v1.old.example.com");
    let object = json!({
        "kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1beta1",
        "metadata": {"name": "v1.old.example.com", "uid": "u"},
        "spec": {"group": "old.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1},
    });
    server.storage().create(&key, object.to_string().into(), None).await.unwrap();
    let path = "/apis/apiregistration.k8s.io/v1/apiservices/v1.old.example.com";
    let read = server.send(&format!("GET {path}")).await;
    assert_eq!(read.status, 200, "{}", read.text());
    assert_eq!(read.str_at("/apiVersion"), "apiregistration.k8s.io/v1");
    server.stop().await;
}
