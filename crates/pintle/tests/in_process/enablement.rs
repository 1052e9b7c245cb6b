//! Tests `--runtime-config` and `--event-ttl`.

use crate::harness::{PATIENCE, Server, options};
use pintle::StorageBackend;
use pintle_machinery::Value;
use std::time::Duration;

/// A server that has registered the API services of what is on.
async fn server(runtime_config: &str) -> Server {
    let server = Server::start_with(|options| options.runtime_config.add(runtime_config)).await;
    server.until_ready().await;
    server
}

async fn names(server: &Server, path: &str, list: &str) -> Vec<String> {
    let document = server.send(&format!("GET {path}")).await.json();
    let items = document[list].as_array().unwrap();
    items.iter().map(|item| item["name"].as_str().or(item["version"].as_str()).unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_off_is_nowhere() {
    let server = server("apps/v1=false,batch/v1/cronjobs=false,autoscaling/v2=false,policy/v1=false").await;
    let check = async |path: &str, status: u16| {
        let answer = server.send(&format!("GET {path}")).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        answer.text().to_owned()
    };
    assert_eq!(check("/apis/apps", 404).await, "404 page not found\n");
    assert_eq!(check("/apis/apps/v1/namespaces/default/deployments", 404).await, "404 page not found\n");
    assert!(check("/apis/batch/v1/cronjobs", 404).await.contains("could not find the requested resource"));
    check("/apis/batch/v1/jobs", 200).await;
    check("/apis/autoscaling/v2/horizontalpodautoscalers", 404).await;
    assert_eq!(names(&server, "/apis/batch/v1", "resources").await, ["jobs", "jobs/status"]);
    assert_eq!(names(&server, "/apis/autoscaling", "versions").await.len(), 1);
    let groups = names(&server, "/apis", "groups").await;
    assert!(!groups.contains(&"apps".to_owned()) && groups.contains(&"batch".to_owned()), "{groups:?}");
    let paths = server.send("GET /openapi/v3").await.json();
    assert_eq!(paths["paths"]["apis/apps/v1"], Value::Null);
    assert_eq!(paths["paths"]["apis/autoscaling/v2"], Value::Null);
    assert_ne!(paths["paths"]["apis/autoscaling/v1"], Value::Null);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_views_of_the_same_objects_whichever_is_on() {
    let dir = tempfile::tempdir().unwrap();
    let start = async |runtime_config: &str| {
        let mut options = options(dir.path());
        options.storage_backend = StorageBackend::Embedded;
        options.runtime_config.add(runtime_config);
        Server::start_in(options).await
    };
    let first = start("networking.k8s.io/v1=false,networking.k8s.io/v1beta1=true").await;
    let body = r#"{"metadata":{"name":"extra"},"spec":{"cidrs":["10.99.0.0/24"]}}"#;
    let created = first.send(&format!("POST /apis/networking.k8s.io/v1beta1/servicecidrs\n\n{body}")).await;
    assert_eq!(created.status, 201, "{}", created.text());
    assert_eq!(created.json()["apiVersion"], "networking.k8s.io/v1beta1");
    assert_eq!(
        created.header("warning"),
        "299 - \"networking.k8s.io/v1beta1 ServiceCIDR is deprecated in v1.34+, unavailable in v1.37+\""
    );
    assert_eq!(first.send("GET /apis/networking.k8s.io/v1/servicecidrs").await.status, 404);
    first.stop().await;
    // Both are disabled; stored objects are kept.
    let second = start("networking.k8s.io/v1=false").await;
    // The group is listed until the API services of its versions are deleted, shortly after the start.
    let is_listed = async || second.send("GET /apis/networking.k8s.io").await.status != 404;
    let unlisted = async { while is_listed().await {} };
    tokio::time::timeout(PATIENCE, unlisted).await.expect("the group is listed no more");
    second.stop().await;
    let third = start("networking.k8s.io/v1beta1=1").await;
    let stable = third.send("GET /apis/networking.k8s.io/v1/servicecidrs/extra").await;
    assert_eq!(stable.json()["spec"]["cidrs"][0], "10.99.0.0/24", "{}", stable.text());
    assert_eq!(stable.json()["apiVersion"], "networking.k8s.io/v1");
    let beta = third.send("GET /apis/networking.k8s.io/v1beta1/servicecidrs/extra").await;
    assert_eq!(beta.json()["metadata"], stable.json()["metadata"]);
    let list = third.send("GET /apis/networking.k8s.io/v1beta1/servicecidrs").await.json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(2));
    third.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_of_devices_convert_between_versions() {
    let server = server("resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true").await;
    let claims = |version: &str| format!("/apis/resource.k8s.io/{version}/namespaces/default/resourceclaims");
    let body =
        r#"{"metadata":{"name":"c"},"spec":{"devices":{"requests":[{"name":"r","deviceClassName":"gpu"}]}}}"#;
    let created = server.send(&format!("POST {}\n\n{body}", claims("v1beta1"))).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let request = async |version: &str| {
        let answer = server.send(&format!("GET {}/c", claims(version))).await;
        answer.json()["spec"]["devices"]["requests"][0].clone()
    };
    let exact =
        pintle_machinery::json!({"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1});
    for version in ["v1", "v1beta2"] {
        assert_eq!(request(version).await, pintle_machinery::json!({"name": "r", "exactly": exact}));
    }
    let mut flat = exact.clone();
    flat["name"] = "r".into();
    assert_eq!(request("v1beta1").await, flat);
    assert_eq!(names(&server, "/apis/resource.k8s.io", "versions").await, ["v1", "v1beta2", "v1beta1"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_can_be_on_at_once() {
    let server = server("api/all=true").await;
    let candidates =
        |version: &str| format!("/apis/coordination.k8s.io/{version}/namespaces/default/leasecandidates");
    let body =
        r#"{"metadata":{"name":"c"},"spec":{"leaseName":"l","binaryVersion":"1.36.0","strategy":"a.b/c"}}"#;
    let made = server.send(&format!("POST {}\n\n{body}", candidates("v1alpha2"))).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let protobuf = [("accept", "application/vnd.kubernetes.protobuf")];
    let read = server.exchange("GET", &format!("{}/c", candidates("v1beta1")), &protobuf, "").await;
    assert!(read.body.windows(7).any(|bytes| bytes == b"v1beta1"));
    let by_name =
        server.send(&format!("GET {}?fieldSelector=metadata.name%3Dc", candidates("v1beta1"))).await;
    assert_eq!(by_name.json()["items"].as_array().map(Vec::len), Some(1), "{}", by_name.text());
    let paths = server.send("GET /openapi/v3").await.json();
    let paths: Vec<&str> = paths["paths"]
        .as_object()
        .unwrap()
        .keys()
        .map(|path| path.as_str())
        .filter(|path| path.contains("v1beta1"))
        .collect();
    assert_eq!(paths.len(), 5, "{paths:?}");
    for path in paths {
        let document = server.send(&format!("GET /openapi/v3/{path}")).await;
        assert_eq!(document.status, 200, "{path}");
        assert!(!document.json()["components"]["schemas"].as_object().unwrap().is_empty(), "{path}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_configuration_is_told_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    for (text, expected) in [
        (
            "api/all=false",
            "[--runtime-config=api/all=false conflicts with --enable-priority-and-fairness=true, invalid runtime-config with only \
             api/all=false]",
        ),
        ("nope/v1=true", "unknown api groups nope/v1"),
        ("api/ga=false", "--runtime-config=api/ga=false conflicts with --enable-priority-and-fairness=true"),
        ("apps/v7=true", "group version apps/v7 that has not been registered"),
    ] {
        let mut options = options(dir.path());
        options.runtime_config.add(text);
        let error = pintle::start(options).await.err().unwrap();
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_its_usual_groups_starts() {
    let server = Server::start_with(|options| {
        options.runtime_config.add("api/ga=false,/v1/configmaps=true,/v1/namespaces=true");
        // Priority and fairness needs the objects of a disabled group.
        options.priority_and_fairness.enabled = false;
    })
    .await;
    assert_eq!(names(&server, "/api/v1", "resources").await[0], "configmaps");
    server.send("POST /api/v1/namespaces/default/configmaps\n\n{\"metadata\":{\"name\":\"a\"}}").await;
    server.assert_lives().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_go_when_their_time_is_over() {
    let server = Server::start_with(|options| options.event_ttl = Duration::from_secs(1)).await;
    let mut watch = server.watch("/api/v1/namespaces/default/events?watch=1", &[]).await;
    let body = r#"{"metadata":{"name":"e"},"involvedObject":{"namespace":"default"}}"#;
    let made = server.send(&format!("POST /api/v1/namespaces/default/events\n\n{body}")).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let mut types = Vec::new();
    for _ in 0..2 {
        let event = tokio::time::timeout(PATIENCE, watch.event()).await.unwrap();
        types.push(event["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(types, ["ADDED", "DELETED"]);
    assert_eq!(server.send("GET /apis/events.k8s.io/v1/namespaces/default/events/e").await.status, 404);
    server.stop().await;
}

/// The operators that compare numbers are for new pods where their gate is open.
#[tokio::test(flavor = "multi_thread")]
async fn tolerations_compare_where_they_may() {
    for (is_open, expected) in [(false, 422), (true, 201)] {
        let server = Server::start_with(|options| {
            options.features.gates.add(&format!("TaintTolerationComparisonOperators={is_open}"));
            options.admission.disable_plugins = Some(vec!["ServiceAccount".to_owned()]);
        })
        .await;
        let tolerations = r#"[{"key": "a", "operator": "Gt", "value": "5", "effect": "NoSchedule"}]"#;
        let containers = r#"[{"name": "c", "image": "example.com/c"}]"#;
        let spec = format!("{{\"tolerations\": {tolerations}, \"containers\": {containers}}}");
        let pod = format!("{{\"metadata\": {{\"name\": \"p\"}}, \"spec\": {spec}}}");
        let answer = server.send(&format!("POST /api/v1/namespaces/default/pods\n\n{pod}")).await;
        assert_eq!(answer.status, expected, "{}", answer.text());
        server.stop().await;
    }
}

/// The check of the caches is listed where its gate is open, which it is not by default in older versions.
#[tokio::test(flavor = "multi_thread")]
async fn the_check_of_caches_is_listed_while_its_gate_is_open() {
    let cases =
        [("", "", true), ("WatchCacheInitializationPostStartHook=false", "", false), ("", "1.35", false)];
    for (gates, version, is_listed) in cases {
        let server = Server::start_with(|options| {
            options.features.gates.add(gates);
            options.features.versions.emulated.extend((!version.is_empty()).then(|| version.to_owned()));
        })
        .await;
        let answer = server.send("GET /readyz?verbose").await;
        let report = answer.text();
        assert_eq!(report.contains("poststarthook/storage-readiness"), is_listed, "{report}");
        server.stop().await;
    }
}
