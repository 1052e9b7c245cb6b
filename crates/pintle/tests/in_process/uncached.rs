//! Tests resources without a watch cache: clients see the same, except for features that need the cache.

use crate::harness::{PATIENCE, Server};
use pintle::{Options, WatchCache};
use pintle_machinery::Value;
use std::time::Instant;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn off(options: &mut Options) {
    options.watch_cache.add_sizes("configmaps#0").unwrap();
}

async fn fill(server: &Server, names: &[&str]) -> String {
    let mut version = String::new();
    for name in names {
        let made = server.send(&format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"{name}\"}}}}")).await;
        assert_eq!(made.status, 201, "{}", made.text());
        version = made.resource_version();
    }
    version
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_the_same_but_page_at_any_version() {
    for cached in [true, false] {
        let server = Server::start_with(|options| {
            if !cached {
                off(options)
            }
        })
        .await;
        let version = fill(&server, &["a", "b", "c"]).await;
        let list = async |query: &str| server.send(&format!("GET {MAPS}?{query}")).await.json();
        for query in [
            "".to_owned(),
            "resourceVersion=0".to_owned(),
            format!("resourceVersion={version}"),
            format!("resourceVersion={version}&resourceVersionMatch=NotOlderThan"),
            format!("resourceVersion={version}&resourceVersionMatch=Exact"),
        ] {
            assert_eq!(names(&list(&query).await), ["a", "b", "c"], "{query}");
        }
        let any = list("resourceVersion=0&limit=2").await;
        let expected: &[&str] = if cached { &["a", "b", "c"] } else { &["a", "b"] };
        assert_eq!(names(&any), expected);
        let first = list(&format!("resourceVersion={version}&limit=2")).await;
        assert_eq!((names(&first), &first["metadata"]["remainingItemCount"]), (vec!["a", "b"], &1.into()));
        server.send(&format!("DELETE {MAPS}/c")).await;
        let token = first["metadata"]["continue"].as_str().unwrap();
        let second = list(&format!("limit=2&continue={token}")).await;
        assert_eq!(names(&second), ["c"]);
        assert_eq!(first["metadata"]["resourceVersion"], second["metadata"]["resourceVersion"]);
        assert_eq!(
            names(&list(&format!("resourceVersion={version}&resourceVersionMatch=Exact")).await).len(),
            3
        );
        assert_eq!(names(&list("fieldSelector=metadata.name%3Da").await), ["a"]);
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_from_the_future_is_refused_at_once() {
    let server = Server::start_with(off).await;
    fill(&server, &["a"]).await;
    for path in [
        format!("{MAPS}?resourceVersion=1000000"),
        format!("{MAPS}?resourceVersion=1000000&resourceVersionMatch=Exact"),
        format!("{MAPS}/a?resourceVersion=1000000"),
    ] {
        let began = Instant::now();
        let answer = server.send(&format!("GET {path}")).await;
        assert_eq!(answer.status, 504, "{}", answer.text());
        assert!(began.elapsed().as_secs() < 2);
        let status = answer.json();
        let message = status["message"].as_str().unwrap();
        assert!(message.starts_with("Timeout: Too large resource version: 1000000, current: "), "{message}");
        assert_eq!(status["details"]["retryAfterSeconds"], Value::Null);
        assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
        assert_eq!(answer.header("retry-after"), "");
    }
    let read = async |query: &str| server.send(&format!("GET {MAPS}/a{query}")).await.status;
    assert_eq!(
        (read("").await, read("?resourceVersion=0").await, read("?resourceVersion=1").await),
        (200, 200, 200)
    );
    assert_eq!(server.send(&format!("GET {MAPS}/none")).await.status, 404);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_and_writes_go_on_without_any_cache() {
    let server = Server::start_with(|options| {
        options.watch_cache = WatchCache { enabled: false, ..WatchCache::default() };
    })
    .await;
    let version = fill(&server, &["a"]).await;
    let mut state =
        server.watch(&format!("{MAPS}?watch=1&fieldSelector=metadata.name%21%3Dkube-root-ca.crt"), &[]).await;
    let mut after = server.watch(&format!("{MAPS}?watch=1&resourceVersion={version}"), &[]).await;
    let patch = "{\"data\":{\"k\":\"v\"}}";
    let patched = server
        .exchange("PATCH", &format!("{MAPS}/a"), &[("content-type", "application/merge-patch+json")], patch)
        .await;
    assert_eq!(patched.status, 200, "{}", patched.text());
    assert_eq!(server.send(&format!("DELETE {MAPS}/a")).await.status, 200);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let event = tokio::time::timeout(PATIENCE, state.event()).await.unwrap();
        seen.push(event["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen, ["ADDED", "MODIFIED", "DELETED"]);
    for expected in ["MODIFIED", "DELETED"] {
        let event = tokio::time::timeout(PATIENCE, after.event()).await.unwrap();
        assert_eq!((&event["type"], &event["object"]["data"]["k"]), (&expected.into(), &"v".into()));
    }
    server.assert_lives().await;
    server.stop().await;
}
