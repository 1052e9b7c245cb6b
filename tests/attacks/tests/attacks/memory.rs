//! Attacks on the stack and on memory.

use crate::Result;
use pintle_attacks::{Bounds, Target};
use pintle_harness::{
    Error,
    definition::{definition, group_of},
    wait_for,
};
use serde_json::{Value, json};
use std::{thread, time::Duration};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MIB: usize = 1 << 20;

/// The limit of the server's memory, in kB.
const MEMORY: u64 = 1 << 20;

fn bounds(requests: u32) -> Bounds {
    Bounds { cpu: Duration::from_secs(1) * requests, peak_memory_kb: MEMORY, livez: Duration::from_secs(3) }
}

/// Sends several requests at the same time, each on a connection of its own. Returns their statuses.
fn at_once(
    target: &mut Target,
    what: &str,
    requests: Vec<(&str, String, &str, Vec<u8>)>,
) -> Result<Vec<u16>> {
    let clients = requests.iter().map(|_| target.master()).collect::<std::result::Result<Vec<_>, _>>()?;
    let bounds = bounds(requests.len() as u32);
    let (statuses, cost) = target.attack(|_| {
        thread::scope(|scope| {
            let threads: Vec<_> = requests
                .iter()
                .zip(clients)
                .map(|((method, path, media_type, body), client)| {
                    scope.spawn(move || {
                        let headers = [("content-type", *media_type)];
                        client.request(method, path, &headers, body).map(|answer| answer.status).ok()
                    })
                })
                .collect();
            let statuses = threads.into_iter().map(|thread| thread.join().ok().flatten().unwrap_or_default());
            Ok::<Vec<u16>, Error>(statuses.collect())
        })
    })?;
    println!("{what}: {statuses:?} {cost:?}");
    cost.assert(what, &bounds);
    Ok(statuses)
}

/// `start`, as many repetitions of `unit` as fit into `size` bytes, and `end`.
fn filled(start: &str, unit: &str, end: &str, size: usize) -> Vec<u8> {
    let unit = unit.repeat((size - start.len() - end.len()) / unit.len());
    format!("{start}{}{end}", unit.trim_end_matches(',')).into_bytes()
}

#[test]
fn copies_do_not_make_a_document_too_deep_to_walk() -> Result {
    let mut target = Target::start()?;
    target.master()?.post(MAPS, &json!({"metadata": {"name": "a"}, "data": {"a": "b"}}))?;
    let doubling: Value = std::iter::once(json!({"op": "add", "path": "/x", "value": {"n": {}}}))
        .chain((0..30).map(|step: u32| {
            let levels = 1_usize << step.min(12);
            json!({"op": "copy", "from": "/x", "path": format!("/x{}", "/n".repeat(levels))})
        }))
        .collect();
    let body = doubling.to_string().into_bytes();
    let requests =
        (0..4).map(|_| ("PATCH", format!("{MAPS}/a"), "application/json-patch+json", body.clone()));
    let requests = requests.collect();
    let statuses = at_once(&mut target, "copies that double the depth", requests)?;
    assert!(statuses.iter().all(|status| (400..500).contains(status)), "{statuses:?}");
    Ok(())
}

#[test]
fn bodies_take_no_more_memory_than_there_is() -> Result {
    let mut target = Target::start()?;
    target.master()?.post(MAPS, &json!({"metadata": {"name": "a"}, "data": {"a": "b"}}))?;
    let alias = |size: usize| {
        let scalar = "x".repeat(size / 2);
        let start = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: b}}\nx: &a {scalar}\ny: [");
        filled(&start, "*a,", "]\n", size)
    };
    let pod = r#"{"metadata":{"name":"p"},"spec":{"containers":[{"ports":["#;
    let rows: Vec<(&str, &str, String, &str, Vec<u8>)> = vec![
        ("aliases of a long scalar", "POST", MAPS.into(), "application/yaml", alias(MIB)),
        (
            "an applied alias",
            "PATCH",
            format!("{MAPS}/b?fieldManager=m"),
            "application/apply-patch+yaml",
            alias(MIB),
        ),
        (
            "a merge patch of small objects",
            "PATCH",
            format!("{MAPS}/a"),
            "application/merge-patch+json",
            filled(r#"{"data":["#, "{\"a\":0},", "]}", 3 * MIB - 1),
        ),
        (
            "a JSON patch of small objects",
            "PATCH",
            format!("{MAPS}/a"),
            "application/json-patch+json",
            filled(r#"[{"op":"add","path":"/x","value":["#, "{\"a\":0},", "]}]", 3 * MIB - 1),
        ),
        (
            "ports",
            "POST",
            "/api/v1/namespaces/default/pods?dryRun=All".into(),
            "application/json",
            filled(pod, "{\"hostPort\":1},", "]}]}}", 600 * 1024),
        ),
        (
            "zeros",
            "PATCH",
            format!("{MAPS}/a"),
            "application/merge-patch+json",
            filled(r#"{"data":["#, "0,", "]}", 3 * MIB - 1),
        ),
    ];
    for (what, method, path, media_type, body) in rows {
        let requests = (0..8).map(|_| (method, path.clone(), media_type, body.clone())).collect();
        let statuses = at_once(&mut target, what, requests)?;
        assert!(statuses.iter().all(|status| (400..500).contains(status)), "{what}: {statuses:?}");
    }
    Ok(())
}

#[test]
fn unknown_members_of_custom_resources_cost_no_more_than_known_ones() -> Result {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const SIZE: usize = 3 * MIB - 1;
    let mut target = Target::start()?;
    let client = target.master()?;
    client.post(DEFINITIONS, &definition(0))?;
    let parts = format!("/apis/{}/v1/namespaces/default/part0s", group_of(0));
    wait_for("the kind to be served", Duration::from_secs(10), || {
        client.get(&parts).ok().filter(|list| list.status == 200)
    })?;
    let head = r#"{"metadata":{"name":"a"},"spec":{"#;
    let distinct: String = (0..).map(|number| format!("\"{number:x}\":0,")).take(SIZE / 11).collect();
    let nested = r#"{"metadata":{"name":"a"},"spec":{"x":["#;
    let rows = [
        ("distinct members", format!("{head}{}}}}}", distinct.trim_end_matches(',')).into_bytes()),
        ("the same member", filled(head, "\"a\":0,", "}}", SIZE)),
        ("objects in an unknown member", filled(nested, "{\"a\":0},", "]}}", SIZE)),
        ("objects with duplicates in an unknown member", filled(nested, "{\"a\":0,\"a\":0},", "]}}", SIZE)),
    ];
    for (what, body) in rows {
        for validation in ["Warn", "Strict"] {
            let path = format!("{parts}?dryRun=All&fieldValidation={validation}");
            let requests = (0..8).map(|_| ("POST", path.clone(), "application/json", body.clone())).collect();
            let statuses = at_once(&mut target, what, requests)?;
            assert!(statuses.iter().all(|status| (200..500).contains(status)), "{what}: {statuses:?}");
        }
    }
    Ok(())
}

#[test]
fn large_applies_leave_nothing_behind() -> Result {
    /// The limit, in kB, of the memory left behind by trees that take many times as much.
    const LEFT: u64 = 150 << 10;
    let mut target = Target::start()?;
    let data: Value = (0..60_000).map(|number| (format!("k{number}"), json!(""))).collect();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
    let body = map.to_string().into_bytes();
    let idle = target.server.memory_kb("VmRSS")?;
    for round in 0..3 {
        let path = |number| format!("{MAPS}/a?dryRun=All&fieldManager=m{round}-{number}");
        let requests =
            (0..8).map(|number| ("PATCH", path(number), "application/apply-patch+yaml", body.clone()));
        let statuses = at_once(&mut target, "large applies", requests.collect())?;
        assert!(statuses.iter().all(|status| matches!(status, 200 | 201 | 429)), "{statuses:?}");
        assert!(statuses.iter().any(|status| *status != 429), "{statuses:?}");
    }
    wait_for("free memory to be returned", Duration::from_secs(30), || {
        target.server.memory_kb("VmRSS").ok().filter(|left| *left < idle + LEFT)
    })?;
    Ok(())
}

#[test]
fn watches_from_long_ago_do_not_read_all_that_happened() -> Result {
    let mut target = Target::start()?;
    let client = target.master()?;
    let created = client.post(MAPS, &json!({"metadata": {"name": "large"}}))?.json()?;
    let first = created["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let mut connection = client.connect()?;
    for round in 0..400 {
        let data = format!("{round}{}", "x".repeat(900_000));
        let body = json!({"metadata": {"name": "large"}, "data": {"a": data}}).to_string();
        let headers = [("content-type", "application/json")];
        let answer = connection.request("PUT", &format!("{MAPS}/large"), &headers, body.as_bytes())?;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    target.server.terminate()?;
    target.server.wait_for_end()?;
    target.server.restart()?;
    let path = format!("{MAPS}?watch=1&resourceVersion={first}&timeoutSeconds=1");
    let requests = (0..8).map(|_| ("GET", path.clone(), "application/json", Vec::new())).collect();
    let statuses = at_once(&mut target, "watches from long ago", requests)?;
    assert!(statuses.iter().all(|status| matches!(status, 200 | 429)), "{statuses:?}");
    assert!(statuses.contains(&200), "{statuses:?}");
    let path = format!("{MAPS}?resourceVersion={first}&resourceVersionMatch=Exact");
    let requests = (0..8).map(|_| ("GET", path.clone(), "application/json", Vec::new())).collect();
    let statuses = at_once(&mut target, "exact lists from long ago", requests)?;
    assert!(statuses.iter().all(|status| matches!(status, 200 | 410 | 429)), "{statuses:?}");
    Ok(())
}
