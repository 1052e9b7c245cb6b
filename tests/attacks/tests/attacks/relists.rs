//! Attacks of many informers at once: all of them list again, or stop reading while objects change.

use crate::Result;
use pintle_attacks::{Bounds, Cost, Target, is_release};
use pintle_harness::{Client, Connection, Error, OTHER_USER};
use serde_json::{Value, json};
use std::{
    thread,
    time::{Duration, Instant},
};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// The informers that list at once.
const INFORMERS: usize = 1_000;
/// The memory of an informer's connection in kB, with what waits for its client.
const INFORMER_KB: u64 = 256;

/// Text of this many bytes that compresses to little less.
fn text(seed: usize, bytes: usize) -> String {
    let mut state = seed as u64 | 1 << 32;
    (0..bytes)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'!' + (state >> 58) as u8)
        })
        .filter(|character| *character != '"' && *character != '\\')
        .collect()
}

fn map(number: usize, bytes: usize) -> Vec<u8> {
    json!({"metadata": {"name": format!("m{number}")}, "data": {"a": text(number, bytes)}})
        .to_string()
        .into_bytes()
}

fn create(client: &Client, objects: usize, bytes: usize) -> Result {
    let mut connection = client.connect()?;
    for number in 0..objects {
        let answer = connection.request("POST", MAPS, &JSON, &map(number, bytes))?;
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    Ok(())
}

/// Lists in pages, as informers do, and begins to watch. The server may refuse a request for now; the informer repeats it.
/// It parses no object, so that a thousand of them leave the processor to the server.
fn relist(connection: &mut Connection, deadline: Instant) -> std::result::Result<usize, Error> {
    let (mut listed, mut token) = (0, String::new());
    let revision = loop {
        let path = format!("{MAPS}?limit=100&continue={token}");
        let answer = connection.request("GET", &path, &[], b"")?;
        if answer.status == 429 && Instant::now() < deadline {
            assert!(answer.header("retry-after").is_some(), "{}", answer.text());
            #[expect(clippy::disallowed_methods, reason = "a client that was asked to wait")]
            thread::sleep(Duration::from_millis(100));
            continue;
        }
        assert_eq!(answer.status, 200, "{}", answer.text());
        let text = answer.text();
        let (list, items) = text.split_once("\"items\":[").ok_or("no items")?;
        listed += items.matches("{\"metadata\":").count();
        let list: Value = serde_json::from_str(&format!("{list}\"items\":[]}}"))?;
        match list["metadata"]["continue"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break list["metadata"]["resourceVersion"].as_str().ok_or("no revision")?.to_owned(),
        }
    };
    loop {
        connection.send("GET", &format!("{MAPS}?watch=1&resourceVersion={revision}"), &[], b"")?;
        match connection.head()? {
            (200, _) => return Ok(listed),
            (429, headers) if Instant::now() < deadline => connection.body(&headers)?,
            (status, _) => return Err(format!("a watch: {status}").into()),
        };
    }
}

fn check(what: &str, cost: Cost, held_kb: u64, beside_kb: u64) {
    println!("{what}: {cost:?}, {held_kb} kB before");
    let bounds = Bounds {
        livez: Duration::from_secs(3),
        cpu: Duration::from_secs(30),
        peak_memory_kb: held_kb + beside_kb,
    };
    cost.assert(what, &bounds);
}

/// The watches of all informers were cut off, and all of them begin again. As another user than the administrator, so that flow
/// control limits them.
#[test]
fn a_thousand_informers_that_list_at_once_take_a_page_each() -> Result {
    let mut target = Target::start()?;
    let master = target.master()?;
    let objects = 300;
    create(&master, objects, 1_000)?;
    let binding = json!({
        "metadata": {"name": "informers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:aggregate-to-view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": OTHER_USER}],
    });
    let bound = master.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding)?;
    assert_eq!(bound.status, 201, "{}", bound.text());
    let held = target.server.memory_kb("VmRSS")?;
    for (who, client) in [("an administrator", master), ("a user", target.stranger()?)] {
        let (connections, cost) = target.attack(|_| {
            let deadline = Instant::now() + Duration::from_secs(120);
            thread::scope(|scope| {
                let informers: Vec<_> = (0..INFORMERS)
                    .map(|_| {
                        scope.spawn(|| -> Result<Connection> {
                            let mut connection = client.connect()?;
                            assert!(relist(&mut connection, deadline)? >= objects);
                            Ok(connection)
                        })
                    })
                    .collect();
                informers.into_iter().map(|informer| informer.join().unwrap()).collect::<Result<Vec<_>>>()
            })
        })?;
        check(&format!("informers of {who}"), cost, held, INFORMERS as u64 * INFORMER_KB);
        drop(connections);
    }
    Ok(())
}

/// Each watch gets the head of its response and reads nothing more, while objects of 25 kB change without end, as the slices
/// that every proxy watches.
#[test]
fn watchers_that_stop_reading_hold_neither_writers_nor_memory() -> Result {
    let mut target = Target::start()?;
    let client = target.master()?;
    let (objects, bytes, watches) = (100, 25_000, 500);
    create(&client, objects, bytes)?;
    let revision =
        client.get(MAPS)?.json()?["metadata"]["resourceVersion"].as_str().ok_or("none")?.to_owned();
    let mut reader = client.lines(&format!("{MAPS}?watch=1&resourceVersion={revision}"))?;
    let stopped = (0..watches)
        .map(|_| {
            let mut connection = client.connect()?;
            let path = format!("{MAPS}?watch=1&resourceVersion={revision}");
            connection.send("GET", &path, &[], b"")?;
            assert_eq!(connection.head()?.0, 200);
            Ok(connection)
        })
        .collect::<Result<Vec<_>>>()?;
    let held = target.server.memory_kb("VmRSS")?;
    let rounds = if is_release() { 100 } else { 12 };
    let (seen, cost) = target.attack(|_| {
        thread::scope(|scope| {
            let reading = scope.spawn(|| -> Result<usize> {
                let mut seen = 0;
                while seen < rounds * objects {
                    let event = reader.next_json()?.ok_or("the watch ended")?;
                    assert_eq!(event["type"], "MODIFIED", "{event}");
                    seen += 1;
                }
                Ok(seen)
            });
            let mut connection = client.connect()?;
            for round in 0..rounds {
                for number in 0..objects {
                    let data = text(number * 1_000 + round + 500, bytes);
                    let body = json!({"metadata": {"name": format!("m{number}")}, "data": {"a": data}});
                    let path = format!("{MAPS}/m{number}");
                    let answer = connection.request("PUT", &path, &JSON, body.to_string().as_bytes())?;
                    assert_eq!(answer.status, 200, "{}", answer.text());
                }
            }
            reading.join().unwrap()
        })
    })?;
    assert_eq!(seen, rounds * objects, "a client that reads gets every event");
    // The queues of all watches, 256 MiB; the event log, 16 MB; 256 kB below TLS and in it for each connection.
    let beside = (256 + 64) * 1024 + watches * 256;
    check("watches that are not read", cost, held, beside as u64);
    drop(stopped);
    Ok(())
}
