//! Tests the layout of the store: keys, media types, versions.

use crate::harness::{Answer, PATIENCE, Server, options};
use pintle::{Options, StorageBackend, StorageMediaType};
use pintle_apiserver::registry::{Engine, StorageFactory, Stores};
use pintle_storage::{Key, KeyValue, ListRequest, MemoryStorage, Storage};
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

/// All values below a prefix.
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
    for kv in stored(&*storage, "/registry/").await {
        // Kube-apiserver's aggregator and API extensions server store JSON.
        let json = ["/registry/apiregistration.k8s.io/", "/registry/apiextensions.k8s.io/"];
        let head: &[u8] = match json.iter().any(|prefix| kv.key.as_str().starts_with(prefix)) {
            true => b"{\"kind\":",
            false => b"k8s\0",
        };
        assert!(kv.value.starts_with(head), "{}: {}", kv.key, kv.value.escape_ascii());
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
        // An object in the configured form is not written again.
        let again = server.send(&format!("PUT {MAPS}/a\n\n{}", written.text())).await;
        assert_eq!(again.resource_version(), written.resource_version(), "{media_type:?}");
        server.stop().await;
        if media_type == StorageMediaType::Protobuf {
            // Except for the managed fields of the updates, the bytes are the same.
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

/// Every resource that is served by default: its group and version, its name, the key of an object, and the version in
/// which kube-apiserver v1.36 stores it. The versions follow from the storage version hashes of its discovery, the keys
/// from its storage prefixes.
const KEYS: &[(&str, &str, &str, &str)] = &[
    ("v1", "configmaps", "/registry/configmaps/ns/name", "v1"),
    ("v1", "endpoints", "/registry/services/endpoints/ns/name", "v1"),
    ("v1", "events", "/registry/events/ns/name", "v1"),
    ("v1", "limitranges", "/registry/limitranges/ns/name", "v1"),
    ("v1", "namespaces", "/registry/namespaces/name", "v1"),
    ("v1", "nodes", "/registry/minions/name", "v1"),
    ("v1", "persistentvolumeclaims", "/registry/persistentvolumeclaims/ns/name", "v1"),
    ("v1", "persistentvolumes", "/registry/persistentvolumes/name", "v1"),
    ("v1", "pods", "/registry/pods/ns/name", "v1"),
    ("v1", "podtemplates", "/registry/podtemplates/ns/name", "v1"),
    ("v1", "replicationcontrollers", "/registry/controllers/ns/name", "v1"),
    ("v1", "resourcequotas", "/registry/resourcequotas/ns/name", "v1"),
    ("v1", "secrets", "/registry/secrets/ns/name", "v1"),
    ("v1", "serviceaccounts", "/registry/serviceaccounts/ns/name", "v1"),
    ("v1", "services", "/registry/services/specs/ns/name", "v1"),
    (
        "admissionregistration.k8s.io/v1",
        "mutatingadmissionpolicies",
        "/registry/mutatingadmissionpolicies/name",
        "admissionregistration.k8s.io/v1beta1",
    ),
    (
        "admissionregistration.k8s.io/v1",
        "mutatingadmissionpolicybindings",
        "/registry/mutatingadmissionpolicybindings/name",
        "admissionregistration.k8s.io/v1beta1",
    ),
    (
        "admissionregistration.k8s.io/v1",
        "mutatingwebhookconfigurations",
        "/registry/mutatingwebhookconfigurations/name",
        "admissionregistration.k8s.io/v1",
    ),
    (
        "admissionregistration.k8s.io/v1",
        "validatingadmissionpolicies",
        "/registry/validatingadmissionpolicies/name",
        "admissionregistration.k8s.io/v1",
    ),
    (
        "admissionregistration.k8s.io/v1",
        "validatingadmissionpolicybindings",
        "/registry/validatingadmissionpolicybindings/name",
        "admissionregistration.k8s.io/v1",
    ),
    (
        "admissionregistration.k8s.io/v1",
        "validatingwebhookconfigurations",
        "/registry/validatingwebhookconfigurations/name",
        "admissionregistration.k8s.io/v1",
    ),
    (
        "apiextensions.k8s.io/v1",
        "customresourcedefinitions",
        "/registry/apiextensions.k8s.io/customresourcedefinitions/name",
        "apiextensions.k8s.io/v1beta1",
    ),
    (
        "apiregistration.k8s.io/v1",
        "apiservices",
        "/registry/apiregistration.k8s.io/apiservices/name",
        "apiregistration.k8s.io/v1",
    ),
    ("apps/v1", "controllerrevisions", "/registry/controllerrevisions/ns/name", "apps/v1"),
    ("apps/v1", "daemonsets", "/registry/daemonsets/ns/name", "apps/v1"),
    ("apps/v1", "deployments", "/registry/deployments/ns/name", "apps/v1"),
    ("apps/v1", "replicasets", "/registry/replicasets/ns/name", "apps/v1"),
    ("apps/v1", "statefulsets", "/registry/statefulsets/ns/name", "apps/v1"),
    (
        "autoscaling/v1",
        "horizontalpodautoscalers",
        "/registry/horizontalpodautoscalers/ns/name",
        "autoscaling/v2",
    ),
    (
        "autoscaling/v2",
        "horizontalpodautoscalers",
        "/registry/horizontalpodautoscalers/ns/name",
        "autoscaling/v2",
    ),
    ("batch/v1", "cronjobs", "/registry/cronjobs/ns/name", "batch/v1"),
    ("batch/v1", "jobs", "/registry/jobs/ns/name", "batch/v1"),
    (
        "certificates.k8s.io/v1",
        "certificatesigningrequests",
        "/registry/certificatesigningrequests/name",
        "certificates.k8s.io/v1",
    ),
    ("coordination.k8s.io/v1", "leases", "/registry/leases/ns/name", "coordination.k8s.io/v1"),
    ("discovery.k8s.io/v1", "endpointslices", "/registry/endpointslices/ns/name", "discovery.k8s.io/v1"),
    ("events.k8s.io/v1", "events", "/registry/events/ns/name", "v1"),
    (
        "flowcontrol.apiserver.k8s.io/v1",
        "flowschemas",
        "/registry/flowschemas/name",
        "flowcontrol.apiserver.k8s.io/v1",
    ),
    (
        "flowcontrol.apiserver.k8s.io/v1",
        "prioritylevelconfigurations",
        "/registry/prioritylevelconfigurations/name",
        "flowcontrol.apiserver.k8s.io/v1",
    ),
    ("networking.k8s.io/v1", "ingressclasses", "/registry/ingressclasses/name", "networking.k8s.io/v1"),
    ("networking.k8s.io/v1", "ingresses", "/registry/ingress/ns/name", "networking.k8s.io/v1"),
    ("networking.k8s.io/v1", "ipaddresses", "/registry/ipaddresses/name", "networking.k8s.io/v1"),
    ("networking.k8s.io/v1", "networkpolicies", "/registry/networkpolicies/ns/name", "networking.k8s.io/v1"),
    ("networking.k8s.io/v1", "servicecidrs", "/registry/servicecidrs/name", "networking.k8s.io/v1"),
    ("node.k8s.io/v1", "runtimeclasses", "/registry/runtimeclasses/name", "node.k8s.io/v1"),
    ("policy/v1", "poddisruptionbudgets", "/registry/poddisruptionbudgets/ns/name", "policy/v1"),
    (
        "rbac.authorization.k8s.io/v1",
        "clusterrolebindings",
        "/registry/clusterrolebindings/name",
        "rbac.authorization.k8s.io/v1",
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "clusterroles",
        "/registry/clusterroles/name",
        "rbac.authorization.k8s.io/v1",
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "rolebindings",
        "/registry/rolebindings/ns/name",
        "rbac.authorization.k8s.io/v1",
    ),
    ("rbac.authorization.k8s.io/v1", "roles", "/registry/roles/ns/name", "rbac.authorization.k8s.io/v1"),
    ("resource.k8s.io/v1", "deviceclasses", "/registry/deviceclasses/name", "resource.k8s.io/v1"),
    ("resource.k8s.io/v1", "resourceclaims", "/registry/resourceclaims/ns/name", "resource.k8s.io/v1"),
    (
        "resource.k8s.io/v1",
        "resourceclaimtemplates",
        "/registry/resourceclaimtemplates/ns/name",
        "resource.k8s.io/v1",
    ),
    ("resource.k8s.io/v1", "resourceslices", "/registry/resourceslices/name", "resource.k8s.io/v1"),
    ("scheduling.k8s.io/v1", "priorityclasses", "/registry/priorityclasses/name", "scheduling.k8s.io/v1"),
    ("storage.k8s.io/v1", "csidrivers", "/registry/csidrivers/name", "storage.k8s.io/v1"),
    ("storage.k8s.io/v1", "csinodes", "/registry/csinodes/name", "storage.k8s.io/v1"),
    (
        "storage.k8s.io/v1",
        "csistoragecapacities",
        "/registry/csistoragecapacities/ns/name",
        "storage.k8s.io/v1",
    ),
    ("storage.k8s.io/v1", "storageclasses", "/registry/storageclasses/name", "storage.k8s.io/v1"),
    ("storage.k8s.io/v1", "volumeattachments", "/registry/volumeattachments/name", "storage.k8s.io/v1"),
    (
        "storage.k8s.io/v1",
        "volumeattributesclasses",
        "/registry/volumeattributesclasses/name",
        "storage.k8s.io/v1",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_resource_lies_where_and_as_kube_apiserver_has_it() {
    let factory = |prefix: &str| {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        Arc::new(StorageFactory::new(Engine { storage, exclusive: true }, prefix))
    };
    let declared = [
        pintle_aggregator::resources(),
        pintle_api::resources(&pintle_api::Config::default()),
        pintle_apiextensions::resources(),
    ];
    let mut found = Vec::new();
    for resources in declared {
        let stores = Stores::start(
            resources,
            Vec::new(),
            &factory("/registry"),
            &pintle_supervisor::Supervisor::current(),
        )
        .unwrap();
        for versioned in stores.resources() {
            let Some(store) = &versioned.store else { continue };
            let resource = &versioned.resource;
            let key = store.key("ns", "name").to_string();
            let version = resource.resource.group_version().to_string();
            let stored = resource.storage.kind.group_version().to_string();
            found.push((version, resource.resource.resource.clone(), key, stored));
        }
        stores.stop();
    }
    found.sort();
    let mut expected: Vec<_> = KEYS
        .iter()
        .map(|(version, name, key, stored)| {
            ((*version).to_owned(), (*name).to_owned(), (*key).to_owned(), (*stored).to_owned())
        })
        .collect();
    expected.sort();
    assert_eq!(found, expected);
}

/// Reads an object once the server's own controllers have updated its status.
async fn settled(server: &Server, path: &str) -> Answer {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = server.send(&format!("GET {path}")).await;
        let conditions = answer.json()["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is_established =
            conditions.iter().any(|own| own["type"] == "Established" && own["status"] == "True");
        if is_established || !path.contains("customresourcedefinitions") {
            return answer;
        }
        assert!(Instant::now() < deadline, "{}", answer.text());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_too_new_to_be_stored_is_stored_in_the_one_before() {
    for media_type in [StorageMediaType::Json, StorageMediaType::Protobuf] {
        let server = Server::start_with(|options| options.storage_media_type = Some(media_type)).await;
        let rows = [
            (
                "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
                r#"{"metadata":{"name":"a.example.com"},"spec":{"policyName":"p"}}"#,
                "/registry/mutatingadmissionpolicybindings/a.example.com",
                "admissionregistration.k8s.io/v1beta1",
            ),
            (
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                r#"{"metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#,
                "/registry/apiextensions.k8s.io/customresourcedefinitions/things.example.com",
                "apiextensions.k8s.io/v1beta1",
            ),
        ];
        for (path, object, key, version) in rows {
            let created = server.send(&format!("POST {path}\n\n{object}")).await;
            assert_eq!(created.status, 201, "{}", created.text());
            let stored = value(&*server.storage(), key).await;
            let stored = String::from_utf8_lossy(&stored).into_owned();
            assert!(stored.contains(version), "{stored}");
            let list = server.send(&format!("GET {path}")).await;
            assert_eq!(list.json()["items"][0]["metadata"]["uid"], created.json()["metadata"]["uid"]);
            let item = format!("{}/{}", path, created.str_at("/metadata/name"));
            let read = settled(&server, &item).await;
            assert_eq!(read.str_at("/metadata/uid"), created.str_at("/metadata/uid"));
            let same = server.send(&format!("PUT {item}\n\n{}", read.text())).await;
            assert_eq!(same.resource_version(), read.resource_version(), "{}", same.text());
        }
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_that_finds_nothing_writes_nothing() {
    for media_type in [StorageMediaType::Protobuf, StorageMediaType::Json] {
        let server = Server::start_with(|options| options.storage_media_type = Some(media_type)).await;
        let stored =
            server.storage().get(&Key::new("/registry/ranges/servicenodeports")).await.unwrap().kv.unwrap();
        assert_eq!(stored.mod_revision, stored.create_revision, "{}", stored.value.escape_ascii());
        server.stop().await;
    }
}
