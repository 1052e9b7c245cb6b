//! Tests the OpenAPI index, and one of the documents.

use crate::harness::{PATIENCE, Server, Transcript, assert_transcript};
use pintle_machinery::Value;

#[tokio::test(flavor = "multi_thread")]
async fn the_index_names_every_group_version_by_hash() {
    let server = Server::start().await;
    let answer = server.send("GET /openapi/v3").await;
    // Go's server detects the type of a document without a media type.
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/plain; charset=utf-8"));
    let json = answer.json();
    let mut keys = String::new();
    for (key, entry) in json["paths"].as_object().unwrap() {
        let url = entry["serverRelativeURL"].as_str().unwrap();
        let hash = url.strip_prefix(&format!("/openapi/v3/{key}?hash=")).unwrap_or_else(|| panic!("{url}"));
        assert!(hash.len() == 128 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{url}");
        keys.push_str(key);
        keys.push('\n');
        if key == "version" {
            let document = server.send(&format!("GET {url}")).await;
            assert_eq!(document.status, 200);
        }
    }
    let mut transcript = Transcript::new(&server);
    transcript.write(&keys);
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_has_paths_and_schemas() {
    let server = Server::start().await;
    let answer = server.send("GET /openapi/v3/apis/coordination.k8s.io/v1").await;
    assert_eq!(answer.status, 200);
    let mut json = answer.json();
    remove_descriptions(&mut json);
    let mut transcript = Transcript::new(&server);
    transcript.write(&format!("{json:#}\n"));
    assert_transcript!(transcript);
    server.stop().await;
}

/// Removes upstream's descriptions, which are long and change independently.
fn remove_descriptions(value: &mut Value) {
    match value {
        Value::Object(map) => {
            // A property may be named `description`, too.
            if map.get("description").is_some_and(Value::is_string) {
                map.remove("description");
            }
            map.values_mut().for_each(remove_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_descriptions),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_cached_by_their_hash() {
    let server = Server::start().await;
    let index = server.send("GET /openapi/v3").await.json();
    let url = index["paths"]["api/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let document = server.send(&format!("GET {url}")).await;
    assert_eq!(document.status, 200);
    let etag = document.header("etag").to_owned();
    assert!(!etag.is_empty());
    let again = server.send(&format!("GET {url}\nIf-None-Match: {etag}")).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    let old = url.replace("hash=", "hash=0");
    let moved = server.send(&format!("GET {old}")).await;
    assert_eq!((moved.status, moved.header("location")), (301, url.as_str()));
    assert_eq!((moved.header("etag"), moved.header("content-type")), (etag.as_str(), "application/json"));
    let refused = server.send(&format!("GET {url}\nAccept: text/html")).await;
    assert_eq!(
        (refused.status, refused.header("vary"), refused.header("cache-control")),
        (406, "Accept", "no-cache, private")
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_served_under_conditions_and_in_ranges() {
    let server = Server::start().await;
    let head = server.send("HEAD /openapi/v3").await;
    assert_eq!((head.status, head.header("accept-ranges"), head.body.len()), (200, "bytes", 0));
    assert!(head.header("last-modified").ends_with(" GMT"));
    let path = "/openapi/v3/version";
    let whole = server.send(&format!("GET {path}")).await;
    assert_eq!((whole.status, whole.header("accept-ranges")), (200, "bytes"));
    let part = server.send(&format!("GET {path}\nRange: bytes=1-4")).await;
    assert_eq!((part.status, &part.body[..]), (206, &whole.body[1..5]));
    let made = whole.header("last-modified");
    let known = server.send(&format!("GET {path}\nIf-Modified-Since: {made}")).await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_are_not_served_are_refused_without_a_body() {
    let server = Server::start().await;
    for (request, code) in [
        ("GET /openapi/v3/apis/none/v1", 404),
        ("POST /openapi/v3/apis/none/v1", 404),
        ("GET /openapi/v3/apis/none/v1\nAccept: text/html", 404),
        ("GET /openapi/v3/", 404),
        ("GET /openapi/v3/api/v1/", 404),
        ("GET /openapi/v3/api/v1\nAccept: text/html", 406),
        ("GET /openapi/v2\nAccept: text/html", 406),
        ("GET /openapi/v3/api/v1\nIf-None-Match: *", 304),
    ] {
        let refused = server.send(request).await;
        assert_eq!((refused.status, refused.body.len()), (code, 0), "{request}");
        assert_eq!(refused.headers.get("content-type"), None, "{request}");
    }
    let refused = server.send("HEAD /openapi/v3/apis/none/v1").await;
    assert_eq!((refused.status, refused.headers.get("content-length")), (404, None));
    // Any other method is answered as GET.
    let (got, posted) =
        (server.send("GET /openapi/v3/version").await, server.send("POST /openapi/v3/version").await);
    assert_eq!((posted.status, &posted.body), (200, &got.body));
    server.stop().await;
}

const DEFINITION: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"as.open.example.com"},
"spec":{"group":"open.example.com","scope":"Namespaced","names":{"plural":"as","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"string","description":"one"}}}}}]}}"#;

/// The URL of a document in the index, if it exists and differs from `other`.
async fn url_of(server: &Server, key: &str, other: Option<&str>) -> Option<String> {
    let index = server.send("GET /openapi/v3").await.json();
    let url = index["paths"][key]["serverRelativeURL"].as_str().map(str::to_owned);
    (url.as_deref() != other).then_some(url?)
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_follow_definitions() {
    const KEY: &str = "apis/open.example.com/v1";
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let server = Server::start().await;
    let core = url_of(&server, "api/v1", None).await;
    let made =
        server.send(&format!("POST {DEFINITIONS}\nContent-Type: application/json\n\n{DEFINITION}")).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let first = wait_for(async || url_of(&server, KEY, None).await).await;
    let spec = async |url: &str| {
        let document = server.send(&format!("GET {url}")).await;
        assert_eq!(document.status, 200);
        document.json()["components"]["schemas"]["com.example.open.v1.A"]["properties"]["spec"].clone()
    };
    assert_eq!(spec(&first).await["description"], "one");

    let patch = r#"[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/description","value":"two"}]"#;
    let patch = format!(
        "PATCH {DEFINITIONS}/as.open.example.com\nContent-Type: application/json-patch+json\n\n{patch}"
    );
    assert_eq!(server.send(&patch).await.status, 200);
    let second = wait_for(async || url_of(&server, KEY, Some(&first)).await).await;
    assert_eq!(spec(&second).await["description"], "two");
    let moved = server.send(&format!("GET {first}")).await;
    assert_eq!((moved.status, moved.header("location")), (301, second.as_str()));
    assert_eq!(url_of(&server, "api/v1", None).await, core, "other documents stay as they are");
    let accept = "Accept: application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
    let protobuf = server.send(&format!("GET {second}\n{accept}")).await;
    assert_eq!(protobuf.status, 200);
    let all = server.send("GET /openapi/v2").await.json();
    assert_eq!(all["definitions"]["com.example.open.v1.A"]["properties"]["spec"]["description"], "two");

    assert_eq!(server.send(&format!("DELETE {DEFINITIONS}/as.open.example.com")).await.status, 200);
    wait_for(async || (server.send(&format!("GET /openapi/v3/{KEY}")).await.status == 404).then_some(()))
        .await;
    assert_eq!(url_of(&server, KEY, None).await, None);
    server.stop().await;
}

/// Repeats a condition until it returns a value.
async fn wait_for<T>(mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let answer = async {
        loop {
            match condition().await {
                Some(answer) => return answer,
                None => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, answer).await.expect("what is waited for comes")
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_are_compared_without_their_encoding() {
    let server = Server::start().await;
    for (encoded, plain) in [
        ("/openapi%2fv3", "/openapi/v3"),
        ("/openapi/v3/apis%2fcoordination.k8s.io%2Fv1", "/openapi/v3/apis/coordination.k8s.io/v1"),
        ("/debug/api_priority_and_fairness/dump%5fqueues", "/debug/api_priority_and_fairness/dump_queues"),
    ] {
        let answers =
            [server.send(&format!("GET {encoded}")).await, server.send(&format!("GET {plain}")).await];
        let [encoded, plain] =
            answers.map(|answer| (answer.status, answer.header("content-type").to_owned()));
        assert_eq!(encoded, plain);
        assert_eq!(plain.0, 200);
    }
    assert_eq!(server.send("GET /%6detrics").await.status, 200);
    server.stop().await;
}
