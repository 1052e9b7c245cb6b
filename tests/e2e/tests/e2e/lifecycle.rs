//! Tests the shutdown of a server, and its state after the next start.

use crate::Result;
use pintle_e2e::{PATIENCE, start};
use pintle_harness::{Client, wait_for};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"of": name}})
}

/// Writers that create objects until the server has ended, and the acknowledged names.
struct Load {
    acknowledged: Arc<Mutex<BTreeSet<String>>>,
    count: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
}

fn load(client: &Client) -> Load {
    let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
    let count = Arc::new(AtomicUsize::new(0));
    let threads = (0..8)
        .map(|writer| {
            let (client, acknowledged, count) =
                (client.clone(), Arc::clone(&acknowledged), Arc::clone(&count));
            thread::spawn(move || {
                let Ok(mut connection) = client.connect() else { return };
                for number in 0.. {
                    let name = format!("w{writer}-{number}");
                    let body = config_map(&name).to_string();
                    let headers = [("content-type", "application/json")];
                    match connection.request("POST", CONFIG_MAPS, &headers, body.as_bytes()) {
                        Ok(response) if response.status == 201 => {
                            acknowledged.lock().unwrap().insert(name);
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                        _ => return,
                    }
                }
            })
        })
        .collect();
    Load { acknowledged, count, threads }
}

impl Load {
    fn wait_for(&self, count: usize) -> Result {
        wait_for("acknowledged writes", PATIENCE, || {
            (self.count.load(Ordering::Relaxed) >= count).then_some(())
        })
    }

    fn acknowledged(self) -> BTreeSet<String> {
        for thread in self.threads {
            thread.join().unwrap();
        }
        let names = self.acknowledged.lock().unwrap();
        names.clone()
    }
}

/// The names of all config maps; checks that each object is as written.
fn names(client: &Client) -> Result<BTreeSet<String>> {
    let list = client.get(CONFIG_MAPS)?.json()?;
    let items = list["items"].as_array().ok_or("no items")?;
    Ok(items
        .iter()
        .map(|item| {
            assert_eq!(item["data"]["of"], item["metadata"]["name"]);
            item["metadata"]["name"].as_str().unwrap().to_owned()
        })
        .collect())
}

#[test]
fn termination_finishes_requests_ends_watches_and_loses_nothing() -> Result {
    let mut server = start()?;
    let client = server.client()?;
    let mut watch = client.lines(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=0"))?;
    // A request with half of its body sent when the shutdown begins.
    let body = config_map("in-flight").to_string();
    let (first, second) = body.split_at(body.len() / 2);
    let mut in_flight = client.connect()?;
    let length = body.len().to_string();
    let headers = [("content-type", "application/json"), ("content-length", length.as_str())];
    in_flight.send("POST", CONFIG_MAPS, &headers, first.as_bytes())?;

    let load = load(&client);
    load.wait_for(100)?;
    // The responses of the load also show that the half request has reached the server.
    server.terminate()?;
    let mut seen = BTreeSet::new();
    let mut cleanly = false;
    // New connections are refused once the server stops listening; then the rest of the body goes out.
    wait_for("the end of listening", PATIENCE, || {
        client.get("/readyz").map_or(Some(()), |r| (r.status != 200).then_some(()))
    })?;
    in_flight.write(second.as_bytes())?;
    let (status, headers) = in_flight.head()?;
    let answer = String::from_utf8(in_flight.body(&headers)?)?;
    assert_eq!(status, 201, "{answer}");
    loop {
        match watch.next_json() {
            Ok(Some(event)) => {
                assert_eq!(event["type"], "ADDED", "{event}");
                seen.insert(event["object"]["metadata"]["name"].as_str().unwrap_or_default().to_owned());
            }
            Ok(None) => {
                cleanly = true;
                break;
            }
            Err(_) => break,
        }
    }
    assert!(cleanly, "the watch was cut off");
    assert!(!seen.is_empty());
    let status = server.wait_for_end()?;
    assert!(status.success(), "{status}");
    let acknowledged = load.acknowledged();

    server.restart()?;
    let there = names(&server.client()?)?;
    let lost: Vec<_> = acknowledged.difference(&there).collect();
    assert!(lost.is_empty(), "acknowledged but gone: {lost:?}");
    assert!(there.contains("in-flight"));
    Ok(())
}

#[test]
fn a_killed_server_has_every_acknowledged_write_and_no_half_one() -> Result {
    let mut server = start()?;
    let mut expected = BTreeSet::new();
    for round in 1..=3 {
        let client = server.client()?;
        for name in &expected {
            // Each round uses the same names; an existing one would end a writer with 409.
            client.delete(&format!("{CONFIG_MAPS}/{name}"))?;
        }
        let load = load(&client);
        load.wait_for(50 * round)?;
        server.kill()?;
        let acknowledged = load.acknowledged();
        server.restart()?;
        let there = names(&server.client()?)?;
        let lost: Vec<_> = acknowledged.difference(&there).collect();
        assert!(lost.is_empty(), "round {round}: acknowledged but gone: {lost:?}");
        expected = there;
    }
    Ok(())
}

#[test]
fn resource_versions_and_allocations_go_on_after_a_restart() -> Result {
    let mut server = start()?;
    let services = "/api/v1/namespaces/default/services";
    let service = |name: &str| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let before = server.client()?.post(services, &service("before"))?.json()?;
    server.terminate()?;
    server.wait_for_end()?;
    server.restart()?;
    let client = server.client()?;
    assert_eq!(
        client.get(&format!("{services}/before"))?.json()?,
        before,
        "the object is the same byte for byte"
    );
    let after = client.post(services, &service("after"))?.json()?;
    let version =
        |object: &Value| object["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse::<u64>().ok());
    assert!(version(&after) > version(&before), "{before} {after}");
    assert_ne!(before["spec"]["clusterIP"], after["spec"]["clusterIP"]);
    assert_ne!(before["spec"]["ports"][0]["nodePort"], after["spec"]["ports"][0]["nodePort"]);
    let mut taken = service("taken");
    taken["spec"]["clusterIP"] = before["spec"]["clusterIP"].clone();
    assert_eq!(client.post(services, &taken)?.status, 422, "the address is still allocated");
    Ok(())
}

#[test]
fn a_second_server_on_the_same_directory_is_refused() -> Result {
    let server = start()?;
    let output = std::process::Command::new(pintle_e2e::variable("PINTLE_SERVER")?)
        .arg("--data-dir")
        .arg(server.directory().join("data"))
        .args(["--bind-address=127.0.0.1", "--secure-port=0"])
        .output()?;
    assert!(!output.status.success());
    assert_eq!(server.client()?.get("/readyz")?.status, 200);
    Ok(())
}
