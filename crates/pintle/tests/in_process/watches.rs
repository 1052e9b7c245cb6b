//! Tests the frames of watches, one JSON text per line.

use crate::harness::{Server, Transcript, assert_transcript};
use pintle_machinery::Value;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn change(server: &Server) {
    for request in [
        "POST /api/v1/namespaces/default/configmaps\n\n{\"metadata\":{\"name\":\"a\",\"labels\":{\"in\":\"yes\"}}}",
        "PATCH /api/v1/namespaces/default/configmaps/a\nContent-Type: application/merge-patch+json\n\n{\"data\":{\"k\":\"v\"}}",
        "PATCH /api/v1/namespaces/default/configmaps/a\nContent-Type: application/merge-patch+json\n\n{\"metadata\":{\"labels\":{\"in\":\"no\"}}}",
        "PATCH /api/v1/namespaces/default/configmaps/a\nContent-Type: application/merge-patch+json\n\n{\"metadata\":{\"labels\":{\"in\":\"yes\"}}}",
        "DELETE /api/v1/namespaces/default/configmaps/a",
    ] {
        let answer = server.send(request).await;
        assert!(answer.status < 300, "{request}: {}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_in_every_form() {
    let server = Server::start().await;
    let version = server.send(&format!("GET {MAPS}")).await.resource_version();
    change(&server).await;
    let mut transcript = Transcript::new(&server);
    let rows = [
        ("", "", 5),
        ("&labelSelector=in%3Dyes", "", 5),
        ("&fieldSelector=metadata.name%3Da", "", 5),
        ("", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", 5),
        ("", "application/json;as=Table;v=v1;g=meta.k8s.io", 5),
        ("&includeObject=None", "application/json;as=Table;v=v1;g=meta.k8s.io", 5),
        ("&pretty=1", "", 5),
    ];
    for (query, accept, count) in rows {
        let accept = if accept.is_empty() { "application/json" } else { accept };
        let path = format!("{MAPS}?watch=1&resourceVersion={version}{query}");
        let mut frames = server.watch(&path, &[("Accept", accept)]).await;
        transcript.write(&format!("> GET {path}\n> Accept: {accept}\n"));
        transcript.write(&format!("content-type: {}\n", frames.headers["content-type"].to_str().unwrap()));
        transcript.write(&frames.take(count).await);
    }
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_comes_first_and_a_bookmark_ends_it() {
    let server = Server::start().await;
    for name in ["a", "b"] {
        let answer = server.send(&format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"{name}\"}}}}")).await;
        assert_eq!(answer.status, 201);
    }
    let initial =
        "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let rows = [
        (format!("{MAPS}?watch=1"), "application/json", 2),
        (format!("{MAPS}?watch=1&resourceVersion=0"), "application/json", 2),
        (format!("{MAPS}{initial}"), "application/json", 3),
        (format!("{MAPS}{initial}"), "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", 3),
        (format!("{MAPS}{initial}"), "application/json;as=Table;v=v1;g=meta.k8s.io", 3),
        (format!("{MAPS}{initial}&includeObject=None"), "application/json;as=Table;v=v1;g=meta.k8s.io", 3),
        (format!("{deployments}{initial}"), "application/json", 1),
    ];
    let mut transcript = Transcript::new(&server);
    for (path, accept, count) in rows {
        let mut frames = server.watch(&path, &[("Accept", accept)]).await;
        transcript.write(&format!("> GET {path}\n> Accept: {accept}\n"));
        transcript.write(&frames.take(count).await);
    }
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_ends_when_its_time_is_over() {
    let server = Server::start().await;
    let mut frames =
        server.watch(&format!("{MAPS}?watch=1&timeoutSeconds=1&allowWatchBookmarks=true"), &[]).await;
    let mut text = String::new();
    while let Some(line) = frames.next().await {
        text.push_str(&line);
    }
    let mut transcript = Transcript::new(&server);
    transcript.write(&text);
    // The deprecated path of the same watch.
    let mut frames = server.watch("/api/v1/watch/namespaces/default?timeoutSeconds=1", &[]).await;
    transcript.write(&frames.take(1).await);
    assert_eq!(frames.next().await, None);
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_future_version_is_told_in_the_stream() {
    let server = Server::start().await;
    let mut frames =
        server.watch(&format!("{MAPS}?watch=1&resourceVersion=99999999&timeoutSeconds=1"), &[]).await;
    let mut text = String::new();
    while let Some(line) = frames.next().await {
        text.push_str(&line);
    }
    let mut transcript = Transcript::new(&server);
    transcript.write(&text);
    // The revision of initial events is awaited for three seconds, also by a watch that is to end sooner.
    let initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let path = format!("{MAPS}?watch=1&resourceVersion=99999999&timeoutSeconds=1&{initial}");
    let refused = server.watch(&path, &[]).await.take(1).await;
    assert!(refused.contains("Timeout: Too large resource version: 99999999"), "{refused}");
    assert_transcript!(transcript);
    server.stop().await;
}

/// The selector of the lower or the upper half of all UIDs, escaped for a query.
fn shard(is_upper: bool) -> String {
    let (start, end) = match is_upper {
        false => ("0x0000000000000000", "0x8000000000000000"),
        true => ("0x8000000000000000", "0x10000000000000000"),
    };
    format!("shardSelector=shardRange(object.metadata.uid,%20%27{start}%27,%20%27{end}%27)")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_reaches_the_watch_of_its_shard() {
    let server = Server::start_with(|options| options.features.gates.add("ShardedListAndWatch=true")).await;
    let version = server.send(&format!("GET {MAPS}")).await.resource_version();
    let from = |is_upper| format!("{MAPS}?watch=1&resourceVersion={version}&{}", shard(is_upper));
    let mut watches = [server.watch(&from(false), &[]).await, server.watch(&from(true), &[]).await];
    for index in 0..12 {
        let made =
            server.send(&format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"map-{index}\"}}}}")).await;
        assert_eq!(made.status, 201, "{}", made.text());
    }
    let metrics = server.send("GET /metrics").await;
    let open = "apiserver_watch_shards_total{group=\"\",resource=\"configmaps\"} 2";
    assert!(metrics.text().contains(open), "{}", metrics.text());
    let (mut seen, mut halves) = (Vec::new(), Vec::new());
    for (is_upper, watch) in [false, true].into_iter().zip(&mut watches) {
        let list = server.send(&format!("GET {MAPS}?{}", shard(is_upper))).await.json();
        let items = list["items"].as_array().unwrap().len();
        for _ in 0..items {
            let event = watch.event().await;
            assert_eq!(event["type"], "ADDED");
            seen.push(event["object"]["metadata"]["name"].as_str().unwrap().to_owned());
        }
        halves.push(list["items"].as_array().unwrap().clone());
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 12, "each object is in one shard: {seen:?}");
    let deleted = server.send(&format!("DELETE {MAPS}?{}", shard(false))).await.json();
    assert_eq!(deleted["items"].as_array().unwrap().len(), halves[0].len());
    let left = server.send(&format!("GET {MAPS}")).await.json();
    assert_eq!(left["items"].as_array().unwrap(), &halves[1]);
    drop(watches);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn selectors_of_shards_mean_nothing_without_their_gate() {
    let server = Server::start().await;
    let made = server.send(&format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"a\"}}}}")).await;
    assert_eq!(made.status, 201);
    let list = server.send(&format!("GET {MAPS}?shardSelector=bad")).await.json();
    assert_eq!((list["items"].as_array().unwrap().len(), &list["metadata"]["shardInfo"]), (1, &Value::Null));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_refusal_of_a_long_running_request_is_sent_as_a_whole() {
    let server = Server::start().await;
    for (path, code) in [
        (format!("{MAPS}?watch=1&resourceVersion=x"), 500),
        (format!("{MAPS}?watch=1&fieldSelector=x%3Dy"), 400),
        ("/api/v1/namespaces/default/pods/none/log".to_owned(), 404),
        ("/api/v1/namespaces/default/pods/none/exec?command=a".to_owned(), 404),
    ] {
        let refused = server.send(&format!("GET {path}")).await;
        let length = refused.headers.get("content-length").map(|length| length.to_str().unwrap().to_owned());
        assert_eq!((refused.status, length), (code, Some(refused.body.len().to_string())), "{path}");
    }
    server.stop().await;
}
