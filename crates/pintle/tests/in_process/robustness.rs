//! Tests shutdowns, restarts, and clients that disconnect or fall behind.

use crate::{
    harness::{Answer, Client, Identity, PATIENCE, Server, options, slow_body, whole},
    shutdown::until_closed,
};
use bytes::Bytes;
use pintle::{Options, StorageBackend};
use std::{
    path::Path,
    time::{Duration, Instant},
};
use tokio::time::timeout;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: (&str, &str) = ("Content-Type", "application/json");

fn on_disk(dir: &Path) -> Options {
    Options { storage_backend: StorageBackend::Embedded, ..options(dir) }
}

fn map(name: &str) -> String {
    format!("{{\"metadata\":{{\"name\":\"{name}\"}}}}")
}

/// Creates config maps until the server stops; returns the names of the acknowledged ones.
async fn write_until_the_end(client: Client, prefix: String) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for index in 0.. {
        let name = format!("{prefix}-{index}");
        let Ok(response) = client.begin("POST", MAPS, &[JSON], whole(map(&name))).await else { break };
        match response.status().as_u16() {
            201 => acknowledged.push(name),
            503 => break,
            code => panic!("{name}: {code}"),
        }
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_the_server_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(on_disk(dir.path())).await;
    let mut watch = server.watch(&format!("{MAPS}?watch=1"), &[]).await;
    let seen = tokio::spawn(async move {
        let mut seen = 0;
        // The stream ends regularly, not with a broken connection.
        while watch.next().await.is_some() {
            seen += 1;
        }
        seen
    });
    let mut writers = Vec::new();
    for index in 0..4 {
        let client = server.client(Identity::Admin).await;
        writers.push(tokio::spawn(write_until_the_end(client, format!("w{index}"))));
    }
    let client = server.client(Identity::Admin).await;
    let writing =
        async { while client.send(&format!("GET {MAPS}")).await.text().matches("\"uid\"").count() < 20 {} };
    timeout(PATIENCE, writing).await.unwrap();
    timeout(PATIENCE, server.take().stop()).await.unwrap().unwrap();
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(timeout(PATIENCE, writer).await.unwrap().unwrap());
    }
    assert!(acknowledged.len() > 10, "{}", acknowledged.len());
    assert!(timeout(PATIENCE, seen).await.unwrap().unwrap() > 0);

    let server = Server::start_in(on_disk(dir.path())).await;
    let list = server.send(&format!("GET {MAPS}")).await.json();
    let stored: std::collections::HashSet<_> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect();
    let lost: Vec<_> = acknowledged.iter().filter(|name| !stored.contains(name.as_str())).collect();
    assert!(lost.is_empty(), "{lost:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_flight_is_finished_when_the_server_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(on_disk(dir.path())).await;
    let client = server.client(Identity::Admin).await;
    let (sender, body) = slow_body();
    let text = map("late");
    let (head, tail) = text.split_at(10);
    sender.send(Bytes::copy_from_slice(head.as_bytes())).unwrap();
    let request = tokio::spawn(async move { client.begin("POST", MAPS, &[JSON], body).await });
    server.client(Identity::Admin).await.until_in_flight(1).await;
    let address = server.address();
    let running = server.take();
    let stopping = tokio::spawn(running.stop());
    until_closed(address).await;
    assert!(!stopping.is_finished(), "the server did not wait for the request");
    sender.send(Bytes::copy_from_slice(tail.as_bytes())).unwrap();
    drop(sender);
    let response = timeout(PATIENCE, request).await.unwrap().unwrap().unwrap();
    assert_eq!(response.status(), 201);
    timeout(PATIENCE, stopping).await.unwrap().unwrap().unwrap();

    let server = Server::start_in(on_disk(dir.path())).await;
    assert_eq!(server.send(&format!("GET {MAPS}/late")).await.status, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_do_not_end_are_cut_off_after_the_grace_period() {
    let grace_period = Duration::from_secs(1);
    let mut server = Server::start_with(|options| options.shutdown_grace_period = grace_period).await;
    let client = server.client(Identity::Admin).await;
    let (sender, body) = slow_body();
    sender.send(Bytes::from_static(b"{")).unwrap();
    let request = tokio::spawn(async move { client.begin("POST", MAPS, &[JSON], body).await });
    server.client(Identity::Admin).await.until_in_flight(1).await;
    let begin = Instant::now();
    timeout(Duration::from_secs(10), server.take().stop()).await.unwrap().unwrap();
    assert!(begin.elapsed() >= grace_period, "{:?}", begin.elapsed());
    let answer = timeout(PATIENCE, request).await.unwrap().unwrap();
    // Refused, unless the connection ended first.
    assert!(answer.as_ref().map_or(true, |answer| answer.status() == 503), "{answer:?}");
    drop(sender);
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_resume_where_they_were_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(on_disk(dir.path())).await;
    let version = server.send(&format!("POST {MAPS}\n\n{}", map("a"))).await.resource_version();
    let b = server.send(&format!("POST {MAPS}\n\n{}", map("b"))).await;
    let deleted = server.send(&format!("DELETE {MAPS}/a")).await;
    assert_eq!((b.status, deleted.status), (201, 200));
    let first = server.send(&format!("GET {MAPS}?limit=1")).await;
    server.stop().await;

    let server = Server::start_in(on_disk(dir.path())).await;
    let c = server.send(&format!("POST {MAPS}\n\n{}", map("c"))).await;
    let mut watch = server.watch(&format!("{MAPS}?watch=1&resourceVersion={version}"), &[]).await;
    let mut events = Vec::new();
    for _ in 0..3 {
        let event = watch.event().await;
        let name = event["object"]["metadata"]["name"].as_str().unwrap();
        events.push(format!("{} {name}", event["type"].as_str().unwrap()));
    }
    assert_eq!(events, ["ADDED b", "DELETED a", "ADDED c"]);
    // Revisions continue, and objects are unchanged.
    assert!(c.resource_version().parse::<u64>().unwrap() > first.resource_version().parse::<u64>().unwrap());
    assert_eq!(server.send(&format!("GET {MAPS}/b")).await.body, b.body);
    let exact = format!("GET {MAPS}?resourceVersionMatch=Exact&resourceVersion={}", first.resource_version());
    let then = server.send(&exact).await;
    assert_eq!(then.status, 200, "{}", then.text());
    assert_eq!(then.json()["items"], first.json()["items"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_go_away_leave_no_claims_behind() {
    let server = Server::start().await;
    let path = "/api/v1/namespaces/default/services";
    let service = |name: &str, address: u8| {
        format!(
            "{{\"metadata\":{{\"name\":\"{name}\"}},\"spec\":{{\"clusterIP\":\"10.0.0.{address}\",\"ports\":[{{\"port\":80}}]}}}}"
        )
    };
    for address in 100..140 {
        let client = server.client(Identity::Admin).await;
        let body = service(&format!("gone-{address}"), address);
        let request =
            tokio::spawn(async move { client.begin("POST", path, &[JSON], whole(body)).await.is_ok() });
        // Clients disconnect before their request is sent, while it is handled, or when it is done.
        tokio::time::sleep(Duration::from_micros(u64::from(address - 100) * 100)).await;
        request.abort();
        request.await.ok();
    }
    // Started requests continue for a moment; then an address is allocated exactly if its service exists.
    server.client(Identity::Admin).await.until_in_flight(0).await;
    let list = server.send(&format!("GET {path}")).await.json();
    let stored: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|item| item["spec"]["clusterIP"].clone()).collect();
    for address in 100..140 {
        let wanted = pintle_machinery::json!(format!("10.0.0.{address}"));
        let answer =
            server.send(&format!("POST {path}\n\n{}", service(&format!("next-{address}"), address))).await;
        let expected = if stored.contains(&wanted) { 422 } else { 201 };
        assert_eq!(answer.status, expected, "{wanted}: {}", answer.text());
    }
    // A 422 allocates nothing: deleting the owner frees the address.
    let freed = server.send(&format!("DELETE {path}/next-100")).await;
    if freed.status == 200 {
        let again = server.send(&format!("POST {path}\n\n{}", service("again", 100))).await;
        assert_eq!(again.status, 201, "{}", again.text());
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_body_makes_no_object() {
    let server = Server::start().await;
    let client = server.client(Identity::Admin).await;
    let (sender, body) = slow_body();
    sender.send(Bytes::from(map("half"))).unwrap();
    let request = tokio::spawn(async move { client.begin("POST", MAPS, &[JSON], body).await.is_ok() });
    let other = server.client(Identity::Admin).await;
    other.until_in_flight(1).await;
    // The object is complete, but not the body.
    request.abort();
    assert!(request.await.is_err_and(|error| error.is_cancelled()));
    other.until_in_flight(0).await;
    let answer = server.send(&format!("GET {MAPS}/half")).await;
    assert_eq!(answer.status, 404, "{}", answer.text());
    // Kept until here, so that the body has not ended regularly.
    drop(sender);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_one_of_many_watchers_sees_every_event() {
    let server = Server::start().await;
    let mut watchers = Vec::new();
    for index in 0..300 {
        if index % 100 == 0 {
            watchers.push((server.client(Identity::Admin).await, Vec::new()));
        }
        let (client, frames) = watchers.last_mut().unwrap();
        let query = if index % 3 == 0 { "&labelSelector=never%3Dset" } else { "" };
        frames.push((query, client.watch(&format!("{MAPS}?watch=1&timeoutSeconds=20{query}"), &[]).await));
    }
    for name in ["a", "b"] {
        assert_eq!(server.send(&format!("POST {MAPS}\n\n{}", map(name))).await.status, 201);
    }
    let labelled = "{\"metadata\":{\"name\":\"c\",\"labels\":{\"never\":\"set\"}}}";
    assert_eq!(server.send(&format!("POST {MAPS}\n\n{labelled}")).await.status, 201);
    for (_, frames) in &mut watchers {
        for (query, frames) in frames {
            let wanted: &[&str] = if query.is_empty() { &["a", "b", "c"] } else { &["c"] };
            for name in wanted {
                let event = frames.event().await;
                assert_eq!(event["object"]["metadata"]["name"], *name, "{query}");
            }
        }
    }
    drop(watchers);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_does_not_read_holds_nobody() {
    let server = Server::start().await;
    let slow_client = server.client(Identity::Admin).await;
    let mut slow = slow_client.watch(&format!("{MAPS}?watch=1"), &[]).await;
    let mut fast = server.watch(&format!("{MAPS}?watch=1"), &[]).await;
    // Older events are compressed, which this text does not allow.
    let mut random = pintle_fault_vfs::Random::new(1);
    let big: String =
        (0..900_000).map(|_| char::from(b' ' + 14 + random.number().to_be_bytes()[0] % 64)).collect();
    let big = big.replace(['\\', '"'], "x");
    let object = |step: usize| {
        format!("{{\"metadata\":{{\"name\":\"big\"}},\"data\":{{\"step\":\"{step}\",\"k\":\"{big}\"}}}}")
    };
    assert_eq!(server.exchange("POST", MAPS, &[JSON], object(0)).await.status, 201);
    fast.event().await;
    // More events than are buffered for slow watchers.
    let steps = 60;
    for step in 1..=steps {
        let answer = server.exchange("PUT", &format!("{MAPS}/big"), &[JSON], object(step)).await;
        assert_eq!(answer.status, 200);
        assert_eq!(fast.event().await["object"]["data"]["step"], step.to_string());
    }
    // The slow watcher gets the buffered events, without a gap, and then the end.
    let mut last = None;
    while let Some(line) = slow.next().await {
        let event: pintle_machinery::Value = serde_json::from_str(&line).unwrap();
        let step: usize = event["object"]["data"]["step"].as_str().unwrap().parse().unwrap();
        let version = event["object"]["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        assert_eq!(step, last.map_or(0, |(last, _)| last + 1));
        last = Some((step, version));
    }
    // A watch from there gets the next event, or 410.
    let (step, version) = last.unwrap();
    assert!(step < steps);
    let mut again = server.watch(&format!("{MAPS}?watch=1&resourceVersion={version}"), &[]).await;
    let event = again.event().await;
    match event["type"].as_str().unwrap() {
        "ERROR" => assert_eq!(event["object"]["code"], 410),
        _ => assert_eq!(event["object"]["data"]["step"], (step + 1).to_string()),
    }
    let answer: Answer = server.send(&format!("GET {MAPS}/big")).await;
    assert_eq!(answer.status, 200);
    server.stop().await;
}
