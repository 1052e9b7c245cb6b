//! Tests how long old revisions can be read: across a restart, and until they are compacted.

use crate::harness::{Answer, PATIENCE, Server, options};
use pintle::{Options, StorageBackend};
use pintle_machinery::{Value, json};
use std::{path::Path, time::Duration};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn start(dir: &Path, change: impl FnOnce(&mut Options)) -> Server {
    let mut options = options(dir);
    options.storage_backend = StorageBackend::Embedded;
    options.etcd_compaction_interval = Duration::ZERO;
    change(&mut options);
    Server::start_in(options).await
}

async fn put(server: &Server, name: &str) -> String {
    let body = format!("{{\"metadata\":{{\"name\":\"{name}\"}}}}");
    let made = server.send(&format!("POST {MAPS}\n\n{body}")).await;
    assert_eq!(made.status, 201, "{}", made.text());
    made.resource_version()
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

/// The first `count` events after a version, such as `ADDED a`.
async fn watched(server: &Server, version: &str, count: usize) -> Vec<String> {
    let mut watch = server.watch(&format!("{MAPS}?watch=1&resourceVersion={version}"), &[]).await;
    let mut events = Vec::new();
    while events.len() < count {
        let event = tokio::time::timeout(PATIENCE, watch.event()).await.unwrap();
        events.push(format!("{} {}", event["type"].as_str().unwrap(), event["object"]["metadata"]["name"]));
    }
    events
}

async fn happen(server: &Server) {
    let data = [("content-type", "application/merge-patch+json")];
    for value in ["1", "2"] {
        let body = format!("{{\"data\":{{\"k\":\"{value}\"}}}}");
        assert_eq!(server.exchange("PATCH", &format!("{MAPS}/b"), &data, body).await.status, 200);
    }
    assert_eq!(server.send(&format!("DELETE {MAPS}/c")).await.status, 200);
    put(server, "e").await;
}

const HAPPENED: [&str; 4] = ["MODIFIED \"b\"", "MODIFIED \"b\"", "DELETED \"c\"", "ADDED \"e\""];

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_watches_go_on_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), |_| {}).await;
    for name in ["a", "b", "c", "d"] {
        put(&server, name).await;
    }
    let first = server.send(&format!("GET {MAPS}?limit=2")).await;
    let (version, token) = (first.resource_version(), first.str_at("/metadata/continue"));
    happen(&server).await;
    assert_eq!(watched(&server, &version, 4).await, HAPPENED);
    server.stop().await;
    for _ in 0..2 {
        let server = start(dir.path(), |_| {}).await;
        let second = server.send(&format!("GET {MAPS}?limit=2&continue={token}")).await;
        assert_eq!((names(&second.json()), second.resource_version()), (vec!["c", "d"], version.clone()));
        assert_eq!(second.json()["metadata"]["continue"], Value::Null);
        let exact = format!("GET {MAPS}?resourceVersion={version}&resourceVersionMatch=Exact");
        assert_eq!(names(&server.send(&exact).await.json()), ["a", "b", "c", "d"]);
        assert_eq!(watched(&server, &version, 4).await, HAPPENED);
        assert_eq!(names(&server.send(&format!("GET {MAPS}")).await.json()), ["a", "b", "d", "e"]);
        server.stop().await;
    }
}

/// Repeats a request until the response is 410.
async fn until_gone(server: &Server, path: &str) -> Answer {
    tokio::time::timeout(PATIENCE, async {
        loop {
            let answer = server.send(&format!("GET {path}")).await;
            if answer.status == 410 {
                return answer;
            }
            assert_eq!(answer.status, 200, "{}", answer.text());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap()
}

fn expired(message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": "Expired", "code": 410,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_compacted_is_gone_for_lists_pages_and_watches() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), |options| {
        options.etcd_compaction_interval = Duration::from_millis(200);
    })
    .await;
    for name in ["a", "b", "c", "d"] {
        put(&server, name).await;
    }
    let first = server.send(&format!("GET {MAPS}?limit=2")).await;
    let (version, token) = (first.resource_version(), first.str_at("/metadata/continue"));
    happen(&server).await;
    let exact = format!("{MAPS}?resourceVersion={version}&resourceVersionMatch=Exact");
    let gone = until_gone(&server, &exact).await;
    assert_eq!(gone.json(), expired("The resourceVersion for the provided list is too old."));
    let gone = until_gone(&server, &format!("{MAPS}?limit=2&continue={token}")).await;
    let fresh = gone.str_at("/metadata/continue");
    let mut status = expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
         results. Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    status["metadata"] = json!({"continue": fresh});
    assert_eq!(gone.json(), status);
    let rest = server.send(&format!("GET {MAPS}?limit=5&continue={fresh}")).await;
    assert_eq!(names(&rest.json()), ["d", "e"]);
    assert!(rest.resource_version().parse::<u64>().unwrap() > version.parse().unwrap());
    // The watch cache still has the events.
    assert_eq!(watched(&server, &version, 4).await, HAPPENED);
    server.stop().await;

    // After a restart neither the watch cache nor the store has them.
    for (cached, message) in [
        (true, "too old resource version: "),
        (false, "The resourceVersion for the provided watch is too old."),
    ] {
        let server = start(dir.path(), |options| {
            if !cached {
                options.watch_cache.add_sizes("configmaps#0").unwrap();
            }
        })
        .await;
        let mut watch = server.watch(&format!("{MAPS}?watch=1&resourceVersion={version}"), &[]).await;
        let event = tokio::time::timeout(PATIENCE, watch.event()).await.unwrap();
        assert_eq!(event["type"], "ERROR");
        let told = event["object"]["message"].as_str().unwrap();
        assert!(told.starts_with(message), "{told}");
        assert_eq!(event["object"], expired(told));
        if cached {
            let (asked, oldest) = told.trim_start_matches(message).split_once(" (").unwrap();
            let oldest: u64 = oldest.trim_end_matches(')').parse().unwrap();
            assert_eq!(asked, version);
            // A watch can start at that revision.
            let mut watch = server.watch(&format!("{MAPS}?watch=1&resourceVersion={oldest}"), &[]).await;
            put(&server, "f").await;
            assert_eq!(watch.event().await["type"], "ADDED");
        }
        assert_eq!(server.send(&format!("GET {exact}")).await.status, 410);
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_compaction_all_of_the_past_stays() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), |_| {}).await;
    let version = put(&server, "a").await;
    put(&server, "b").await;
    happen_often(&server).await;
    server.stop().await;
    let server = start(dir.path(), |_| {}).await;
    let exact = format!("GET {MAPS}?resourceVersion={version}&resourceVersionMatch=Exact");
    assert_eq!(names(&server.send(&exact).await.json()), ["a"]);
    server.stop().await;
}

async fn happen_often(server: &Server) {
    let data = [("content-type", "application/merge-patch+json")];
    for value in 0..200 {
        let body = format!("{{\"data\":{{\"k\":\"{value}\"}}}}");
        assert_eq!(server.exchange("PATCH", &format!("{MAPS}/b"), &data, body).await.status, 200);
    }
}
