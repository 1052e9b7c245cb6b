//! What lies in the store: keys, media types, versions.

use crate::harness::{Server, options};
use pintle::{Options, StorageBackend, StorageMediaType};
use pintle_storage::{Key, KeyValue, ListRequest, Storage};
use std::path::Path;

/// Everything that is stored below a prefix.
async fn stored(storage: &dyn Storage, prefix: &str) -> Vec<KeyValue> {
    let request = ListRequest { prefix: prefix.to_owned(), start_after: None, limit: 0, revision: None };
    storage.get_list(request).await.unwrap().items
}

async fn value(storage: &dyn Storage, key: &str) -> Vec<u8> {
    storage.get(&Key::new(key)).await.unwrap().kv.unwrap_or_else(|| panic!("no {key}")).value.to_vec()
}

fn on_disk(dir: &Path, media_type: StorageMediaType) -> Options {
    Options {
        storage_backend: StorageBackend::Embedded,
        storage_media_type: Some(media_type),
        ..options(dir)
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(flavor = "multi_thread")]
async fn protobuf_at_rest_is_the_envelope_and_the_message() {
    let server =
        Server::start_with(|options| options.storage_media_type = Some(StorageMediaType::Protobuf)).await;
    let created = server
        .send(&format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"a\"}},\"data\":{{\"k\":\"v\"}}}}"))
        .await;
    assert_eq!(created.status, 201, "{}", created.text());
    let storage = server.storage();
    let value = value(&*storage, "/registry/configmaps/default/a").await;
    // Magic, TypeMeta{v1, ConfigMap}, Raw{ObjectMeta{name a, generateName "", namespace default, selfLink "", uid …
    let head = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12";
    assert!(value.starts_with(head), "{:?}", value.escape_ascii().to_string());
    let message = value.get(head.len() + 1..).unwrap();
    let message = if value[head.len()] & 0x80 != 0 { &message[1..] } else { message };
    assert_eq!(message[0], 0x0a, "metadata");
    let uid = created.str_at("/metadata/uid");
    let metadata = format!("\x0a\x01a\x12\0\x1a\x07default\"\0*${uid}2\08\0B\x08\x08");
    assert!(
        value.windows(metadata.len()).any(|window| window == metadata.as_bytes()),
        "{}",
        value.escape_ascii()
    );
    // Data{k: v}, and the envelope's empty content encoding and type.
    assert!(value.ends_with(b"\x12\x06\x0a\x01k\x12\x01v\x1a\0\"\0"), "{}", value.escape_ascii());
    // All built-in kinds, and none twice.
    for kv in stored(&*storage, "/registry/").await {
        assert!(kv.value.starts_with(b"k8s\0"), "{}: {}", kv.key, kv.value.escape_ascii());
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_media_type_serves_the_same() {
    for media_type in [StorageMediaType::Protobuf, StorageMediaType::Yaml, StorageMediaType::Json] {
        let server = Server::start_with(|options| options.storage_media_type = Some(media_type)).await;
        let mut watch = server.watch(&format!("{MAPS}?watch=1"), &[]).await;
        let created = server.send(&format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"a\"}}}}")).await;
        assert_eq!(created.status, 201, "{}", created.text());
        let added = watch.next().await.unwrap();
        assert_eq!(added, format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", created.text().trim_end()));
        let patched = server
            .exchange(
                "PATCH",
                &format!("{MAPS}/a"),
                &[("Content-Type", "application/merge-patch+json")],
                r#"{"data":{"k":"<v>"}}"#,
            )
            .await;
        assert_eq!(patched.status, 200, "{}", patched.text());
        let modified = watch.next().await.unwrap();
        assert_eq!(modified, format!("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", patched.text().trim_end()));
        assert_eq!(server.send(&format!("GET {MAPS}/a")).await.text(), patched.text());
        let same = server
            .exchange(
                "PATCH",
                &format!("{MAPS}/a"),
                &[("Content-Type", "application/merge-patch+json")],
                r#"{"data":{"k":"<v>"}}"#,
            )
            .await;
        assert_eq!(same.resource_version(), patched.resource_version(), "no update is no write");
        let deleted = server.send(&format!("DELETE {MAPS}/a")).await;
        assert_eq!(deleted.status, 200, "{}", deleted.text());
        assert!(watch.next().await.unwrap().starts_with("{\"type\":\"DELETED\""));
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_media_type_is_read_and_rewritten_by_an_update_of_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let key = "/registry/configmaps/default/a";
    let server = Server::start_in(on_disk(dir.path(), StorageMediaType::Protobuf)).await;
    let created = server
        .send(&format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"a\"}},\"data\":{{\"k\":\"v\"}}}}"))
        .await;
    let first = value(&*server.storage(), key).await;
    server.stop().await;
    for media_type in [StorageMediaType::Json, StorageMediaType::Yaml, StorageMediaType::Protobuf] {
        let server = Server::start_in(on_disk(dir.path(), media_type)).await;
        let read = server.send(&format!("GET {MAPS}/a")).await;
        assert_eq!(read.str_at("/metadata/uid"), created.str_at("/metadata/uid"));
        let before = value(&*server.storage(), key).await;
        let written = server.send(&format!("PUT {MAPS}/a\n\n{}", read.text())).await;
        assert_eq!(written.status, 200, "{}", written.text());
        let after = value(&*server.storage(), key).await;
        assert_ne!(before, after, "{media_type:?}");
        assert_ne!(written.resource_version(), read.resource_version());
        // Once it is in the configured form, nothing more is written.
        let again = server.send(&format!("PUT {MAPS}/a\n\n{}", written.text())).await;
        assert_eq!(again.resource_version(), written.resource_version(), "{media_type:?}");
        server.stop().await;
        if media_type == StorageMediaType::Protobuf {
            // But for the managed fields of the updates, all is as it was.
            assert_eq!(first[..20], after[..20]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_stored_in_an_older_version_is_served_in_the_newest_and_rewritten() {
    let server =
        Server::start_with(|options| options.storage_media_type = Some(StorageMediaType::Protobuf)).await;
    let storage = server.storage();
    let rows = [
        (
            "/registry/poddisruptionbudgets/default/old",
            r#"{"kind":"PodDisruptionBudget","apiVersion":"policy/v1beta1","metadata":{"name":"old","namespace":"default","uid":"u1","creationTimestamp":"2020-01-01T00:00:00Z"},"spec":{"minAvailable":1,"selector":{}},"status":{"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,"expectedPods":0}}"#,
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets/old",
            "/spec/selector/matchExpressions/0/operator",
            "Exists",
        ),
        (
            "/registry/horizontalpodautoscalers/default/old",
            r#"{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v1","metadata":{"name":"old","namespace":"default","uid":"u2","creationTimestamp":"2020-01-01T00:00:00Z"},"spec":{"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"},"minReplicas":1,"maxReplicas":3,"targetCPUUtilizationPercentage":70},"status":{"currentReplicas":0,"desiredReplicas":0}}"#,
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/old",
            "/spec/metrics/0/resource/target/type",
            "Utilization",
        ),
        (
            "/registry/events/default/old",
            r#"{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"name":"old","namespace":"default","uid":"u3","creationTimestamp":"2020-01-01T00:00:00Z"},"eventTime":"2020-01-01T00:00:00.000000Z","reportingController":"c","reportingInstance":"i","action":"Act","reason":"Why","regarding":{"kind":"Pod","name":"p","namespace":"default"},"note":"n","type":"Normal"}"#,
            "/api/v1/namespaces/default/events/old",
            "/involvedObject/name",
            "p",
        ),
        (
            "/registry/ingress/default/old",
            r#"{"kind":"Ingress","apiVersion":"networking.k8s.io/v1beta1","metadata":{"name":"old","namespace":"default","uid":"u4","creationTimestamp":"2020-01-01T00:00:00Z"},"spec":{"backend":{"serviceName":"s","servicePort":80}},"status":{"loadBalancer":{}}}"#,
            "/apis/networking.k8s.io/v1/namespaces/default/ingresses/old",
            "/spec/defaultBackend/service/name",
            "s",
        ),
    ];
    for (key, old, path, pointer, expected) in rows {
        storage.create(&Key::new(key), old.into(), None).await.unwrap();
        let read = server.send(&format!("GET {path}")).await;
        assert_eq!(read.status, 200, "{}", read.text());
        assert_eq!(read.str_at(pointer), expected);
        let patched =
            server.exchange("PATCH", path, &[("Content-Type", "application/merge-patch+json")], "{}").await;
        assert_eq!(patched.status, 200, "{}", patched.text());
        assert_ne!(patched.resource_version(), read.resource_version(), "{path} is stale");
        let stored = value(&*storage, key).await;
        assert!(stored.starts_with(b"k8s\0"), "{}", stored.escape_ascii());
        let again =
            server.exchange("PATCH", path, &[("Content-Type", "application/merge-patch+json")], "{}").await;
        assert_eq!(again.resource_version(), patched.resource_version(), "{path} is not stale any more");
    }
    server.stop().await;
}
