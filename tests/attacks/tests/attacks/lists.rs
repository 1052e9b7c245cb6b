//! Attacks with responses that are far larger than their requests: lists in all forms, and watches with initial events.

use crate::Result;
use pintle_attacks::{Bounds, Cost, Target, is_release};
use pintle_harness::{Client, Server};
use serde_json::json;
use std::{thread, time::Duration};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The limit of the server's memory beyond its objects, in kB.
const BESIDE: u64 = 192 * 1024;

/// Creates objects of `bytes` bytes each, on several connections.
fn fill(client: &Client, objects: usize, bytes: usize) -> Result {
    thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                scope.spawn(move || -> Result {
                    let mut connection = client.connect()?;
                    for number in (writer..objects).step_by(8) {
                        let body = json!({
                            "metadata": {"name": format!("m{number}"), "labels": {"all": "true"}},
                            "data": {"a": "x".repeat(bytes)}});
                        let headers = [("content-type", "application/json")];
                        let answer =
                            connection.request("POST", MAPS, &headers, body.to_string().as_bytes())?;
                        assert_eq!(answer.status, 201, "{}", answer.text());
                    }
                    Ok(())
                })
            })
            .collect();
        writers.into_iter().try_for_each(|writer| writer.join().unwrap())
    })
}

/// Requests a list on several connections at once; returns the status and the length of each response.
fn at_once(server: &Server, count: usize, accept: &str) -> Result<Vec<(u16, usize)>> {
    let client = server.client()?;
    thread::scope(|scope| {
        let readers: Vec<_> = (0..count)
            .map(|_| {
                scope.spawn(|| -> Result<(u16, usize)> {
                    let mut connection = client.connect()?;
                    connection.send("GET", MAPS, &[("accept", accept)], b"")?;
                    let (status, headers) = connection.head()?;
                    Ok((status, connection.body(&headers)?.len()))
                })
            })
            .collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    })
}

fn check(what: &str, cost: Cost, held_kb: u64) {
    println!("{what}: {cost:?}, {held_kb} kB before");
    let bounds = Bounds {
        livez: Duration::from_secs(1),
        cpu: Duration::from_secs(30),
        peak_memory_kb: held_kb + BESIDE,
    };
    cost.assert(what, &bounds);
}

#[test]
fn lists_of_any_form_take_a_frame_each() -> Result {
    let mut target = Target::start()?;
    let objects = if is_release() { 20_000 } else { 2_000 };
    fill(&target.master()?, objects, 10_000)?;
    // Encodings that are cached beside the objects are made once.
    at_once(&target.server, 1, "application/vnd.kubernetes.protobuf")?;
    let held = target.server.memory_kb("VmRSS")?;
    for accept in [
        "application/json;as=Table;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        "application/vnd.kubernetes.protobuf",
        "application/json;pretty=1",
    ] {
        let (answers, cost) = target.attack(|server| at_once(server, 10, accept))?;
        assert!(
            answers.iter().all(|(status, length)| *status == 200 && *length > objects * 50),
            "{answers:?}"
        );
        check(accept, cost, held);
    }
    let (answers, cost) = target.attack(|server| at_once(server, 10, "application/yaml"))?;
    assert!(answers.iter().all(|(status, _)| *status == 406), "{answers:?}");
    check("YAML", cost, held);
    Ok(())
}

/// Each client reads the head of its response, and nothing after it.
#[test]
fn watches_that_are_not_read_take_a_frame_each() -> Result {
    let mut target = Target::start()?;
    fill(&target.master()?, 300, 700_000)?;
    let held = target.server.memory_kb("VmRSS")?;
    for accept in ["application/json", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"] {
        let path = format!(
            "{MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        );
        let (watches, cost) = target.attack(|server| {
            let client = server.client()?;
            let mut watches = Vec::new();
            for _ in 0..100 {
                let mut connection = client.connect()?;
                connection.send("GET", &path, &[("accept", accept)], b"")?;
                assert_eq!(connection.head()?.0, 200);
                watches.push(connection);
            }
            Ok(watches)
        })?;
        check(&format!("watches as {accept}"), cost, held + watches.len() as u64 * 2 * 1024);
    }
    Ok(())
}
