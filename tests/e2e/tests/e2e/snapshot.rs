//! Tests snapshots of a running server, and servers on the restored stores.

use crate::Result;
use pintle_e2e::{PATIENCE, config, start};
use pintle_harness::{Client, Etcd, Server, wait_for};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Runs `pintle snapshot`.
fn snapshot(args: &[&str]) -> Result<Output> {
    let mut command = Command::new(pintle_e2e::variable("PINTLE_SERVER")?);
    Ok(command.arg("snapshot").args(args).output()?)
}

/// Runs `pintle snapshot`, which must succeed, and returns its JSON output.
fn snapshot_json(args: &[&str]) -> Result<Value> {
    let output = snapshot(&[args, &["-o", "json"]].concat())?;
    if !output.status.success() {
        return Err(format!("{args:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Runs `pintle snapshot`, which must fail, and returns its error message.
fn snapshot_fails(args: &[&str]) -> Result<String> {
    let output = snapshot(args)?;
    assert!(!output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    Ok(String::from_utf8(output.stderr)?)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn data_dir(server: &Server) -> PathBuf {
    server.directory().join("data")
}

fn config_map(name: &str, round: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"round": round.to_string()}},
        "data": {"text": name.repeat(20), "round": round.to_string()},
    })
}

/// Writers that create, replace and delete objects until they are stopped.
struct Load {
    stop: Arc<AtomicBool>,
    writes: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    fn start(client: &Client) -> Load {
        let (stop, writes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let threads = (0..4)
            .map(|writer| {
                let (client, stop, writes) = (client.clone(), Arc::clone(&stop), Arc::clone(&writes));
                thread::spawn(move || {
                    let mut connection = client.connect().unwrap();
                    for round in 0.. {
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                        let name = format!("w{writer}-{}", round % 30);
                        let body = config_map(&name, round).to_string();
                        let one = format!("{CONFIG_MAPS}/{name}");
                        let headers = [("content-type", "application/json")];
                        let (method, path, body, expected) = match (round / 30) % 3 {
                            0 => ("POST", CONFIG_MAPS, body.as_str(), 201),
                            1 => ("PUT", one.as_str(), body.as_str(), 200),
                            _ => ("DELETE", one.as_str(), "", 200),
                        };
                        let response = connection.request(method, path, &headers, body.as_bytes()).unwrap();
                        assert_eq!(response.status, expected, "{method} {path}: {}", response.text());
                        writes.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        Load { stop, writes, threads }
    }

    fn wait_for_more(&self, more: usize) -> Result {
        let target = self.writes.load(Ordering::Relaxed) + more;
        wait_for("writes", PATIENCE, || (self.writes.load(Ordering::Relaxed) >= target).then_some(()))
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

/// The complete objects of a list, by name.
fn objects(list: &Value) -> BTreeMap<String, Value> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| (item["metadata"]["name"].as_str().unwrap().to_owned(), item.clone())).collect()
}

/// All objects that a server serves.
fn everything(client: &Client) -> Result<BTreeMap<String, Value>> {
    let paths = [
        "/api/v1/configmaps",
        "/api/v1/namespaces",
        "/api/v1/services",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
    ];
    let mut everything = BTreeMap::new();
    for path in paths {
        let list = client.get(path)?.json()?;
        for (name, object) in objects(&list) {
            everything.insert(format!("{path}/{name}"), object);
        }
    }
    // A server writes these at its start: each server has another port, and the authority of its directory.
    for own in ["/api/v1/services/kubernetes", "/api/v1/configmaps/extension-apiserver-authentication"] {
        everything.remove(own).ok_or("a server has its own objects")?;
    }
    Ok(everything)
}

/// Compares objects one by one, so that the message has only the one that differs.
fn assert_same(there: &BTreeMap<String, Value>, expected: &BTreeMap<String, Value>) {
    assert_eq!(there.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, object) in expected {
        assert_eq!(there[name].to_string(), object.to_string(), "{name}");
    }
}

#[test]
fn a_snapshot_of_a_busy_server_is_the_list_at_its_revision_and_restores_byte_for_byte() -> Result {
    let mut server = start()?;
    let client = server.client()?;
    for number in 0..50 {
        assert_eq!(client.post(CONFIG_MAPS, &config_map(&format!("still-{number}"), 0))?.status, 201);
    }
    let load = Load::start(&client);
    load.wait_for_more(100)?;
    let file = server.directory().join("busy.snap");
    let data = data_dir(&server);
    let saved = snapshot_json(&["save", text(&file), "--data-dir", text(&data)])?;
    load.wait_for_more(50)?;
    let revision = saved["revision"].as_u64().ok_or("no revision")?;
    let exact = format!("{CONFIG_MAPS}?resourceVersion={revision}&resourceVersionMatch=Exact");
    let at_revision = objects(&client.get(&exact)?.json()?);
    load.stop();
    assert!(at_revision.len() >= 50, "{at_revision:?}");
    assert_eq!(snapshot_json(&["status", text(&file)])?, saved);
    let first = at_revision.get("still-0").ok_or("still-0 is missing")?.clone();
    server.terminate()?;
    server.wait_for_end()?;

    // Another server on the restored store has the state of that revision.
    let mut restored = Server::start(config()?)?;
    let last_of_new = restored.client()?.get(CONFIG_MAPS)?.json()?["metadata"]["resourceVersion"].clone();
    assert!(last_of_new.as_str().is_some_and(|version| !version.is_empty()));
    restored.terminate()?;
    restored.wait_for_end()?;
    let new_data = data_dir(&restored);
    let refused = snapshot_fails(&["restore", text(&file), "--data-dir", text(&new_data)])?;
    assert!(refused.contains("there is a store already"), "{refused}");
    fs::remove_dir_all(new_data.join("store"))?;
    let told = snapshot_json(&["restore", text(&file), "--data-dir", text(&new_data)])?;
    assert_eq!((&told["revision"], &told["snapshot"]), (&saved["revision"], &saved));
    restored.restart()?;
    let client = restored.client()?;
    assert_same(&objects(&client.get(CONFIG_MAPS)?.json()?), &at_revision);

    // Revisions keep their meaning: a watch from the snapshot's revision continues, an older one gets 410.
    let mut watch = client.lines(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={revision}"))?;
    assert_eq!(client.delete(&format!("{CONFIG_MAPS}/still-0"))?.status, 200);
    let event = loop {
        let event = watch.next_json()?.ok_or("the watch ended")?;
        if event["object"]["metadata"]["name"] == "still-0" {
            break event;
        }
    };
    assert_eq!((&event["type"], &event["object"]["data"]), (&json!("DELETED"), &first["data"]));
    let older = revision - 20;
    let mut watch = client.lines(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={older}"))?;
    let gone = watch.next_json()?.ok_or("the watch ended")?;
    assert_eq!((&gone["type"], &gone["object"]["code"]), (&json!("ERROR"), &json!(410)), "{gone}");
    let exact = format!("{CONFIG_MAPS}?resourceVersion={older}&resourceVersionMatch=Exact");
    assert_eq!(client.get(&exact)?.status, 410);
    Ok(())
}

#[test]
fn a_stopped_server_goes_on_on_the_restored_store_as_if_nothing_had_been() -> Result {
    let mut server = start()?;
    let client = server.client()?;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"type": "NodePort", "ports": [{"port": 80}]},
    });
    let services = "/api/v1/namespaces/default/services";
    let service = client.post(services, &service)?.json()?;
    for number in 0..30 {
        assert_eq!(client.post(CONFIG_MAPS, &config_map(&format!("c{number:02}"), 0))?.status, 201);
    }
    let page = client.get(&format!("{CONFIG_MAPS}?limit=10"))?.json()?;
    let token = page["metadata"]["continue"].as_str().ok_or("no token")?.to_owned();
    let before = everything(&client)?;
    server.terminate()?;
    server.wait_for_end()?;
    let (data, file) = (data_dir(&server), server.directory().join("stopped.snap"));
    let saved = snapshot_json(&["save", text(&file), "--data-dir", text(&data)])?;
    fs::rename(data.join("store"), data.join("old-store"))?;
    snapshot_json(&["restore", text(&file), "--data-dir", text(&data)])?;
    // Without writes in between, the snapshot is the same again.
    let again = server.directory().join("again.snap");
    let saved_again = snapshot_json(&["save", text(&again), "--data-dir", text(&data)])?;
    for same in ["revision", "keys", "keyBytes", "valueBytes", "values"] {
        assert_eq!(saved_again[same], saved[same], "{same}");
    }

    server.restart()?;
    let client = server.client()?;
    assert_same(&everything(&client)?, &before);
    let next = client.get(&format!("{CONFIG_MAPS}?limit=10&continue={token}"))?;
    assert_eq!(next.status, 200, "{}", next.text());
    let names: Vec<String> = objects(&next.json()?).into_keys().collect();
    assert_eq!(names.len(), 10);
    assert!(names.iter().all(|name| name.as_str() >= "c09"), "{names:?}");
    // Addresses and ports stay allocated.
    let mut taken = service.clone();
    taken["metadata"] = json!({"name": "taken"});
    assert_eq!(client.post(services, &taken)?.status, 422);
    Ok(())
}

#[test]
fn damaged_and_foreign_snapshots_are_refused_and_make_nothing() -> Result {
    let server = start()?;
    let data = data_dir(&server);
    let file = server.directory().join("a.snap");
    snapshot_json(&["save", text(&file), "--data-dir", text(&data)])?;
    let refused = snapshot_fails(&["save", text(&file), "--data-dir", text(&data)])?;
    assert!(refused.contains("there is such a file already"), "{refused}");
    snapshot_json(&["save", text(&file), "--data-dir", text(&data), "--overwrite"])?;

    let whole = fs::read(&file)?;
    let mut flipped = whole.clone();
    let middle = whole.len() / 2;
    flipped[middle] ^= 0x10;
    let new = server.directory().join("new");
    let rows: [(&str, &[u8], &str); 4] = [
        ("cut.snap", &whole[..middle], "damaged at offset"),
        ("flipped.snap", &flipped, "damaged at offset"),
        ("foreign.snap", b"PK\x03\x04 and so on, and longer than a header", "no snapshot of Pintle"),
        ("empty.snap", b"", "no snapshot of Pintle"),
    ];
    for (name, content, expected) in rows {
        let path = server.directory().join(name);
        fs::write(&path, content)?;
        for args in [vec!["status", text(&path)], vec!["restore", text(&path), "--data-dir", text(&new)]] {
            let said = snapshot_fails(&args)?;
            assert!(said.contains(text(&path)) && said.contains(expected), "{args:?}: {said}");
        }
        assert!(!new.exists(), "{name}");
    }
    let said = snapshot_fails(&["save", text(&new.join("x.snap")), "--data-dir", text(&new)])?;
    assert!(said.contains(text(&new)), "{said}");
    assert!(!new.exists());
    Ok(())
}

/// The objects without their resourceVersions, which etcd assigns again.
fn without_versions(objects: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let mut objects = objects.clone();
    for object in objects.values_mut() {
        object["metadata"]["resourceVersion"] = Value::Null;
    }
    objects
}

fn version(object: &Value) -> Result<u64> {
    let version =
        object["metadata"]["resourceVersion"].as_str().ok_or_else(|| format!("no version: {object}"))?;
    Ok(version.parse()?)
}

#[test]
fn a_cluster_moves_to_etcd_and_back() -> Result {
    let etcd = Etcd::start(1)?;
    let servers = format!("--etcd-servers={}", etcd.urls());
    let mut server = start()?;
    let client = server.client()?;
    for number in 0..120 {
        assert_eq!(client.post(CONFIG_MAPS, &config_map(&format!("c{number:03}"), 0))?.status, 201);
    }
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"key": "AAECAwQ="},
    });
    assert_eq!(client.post(secrets, &secret)?.status, 201);
    let events = "/api/v1/namespaces/default/events";
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "Moved",
        "involvedObject": {"kind": "ConfigMap", "namespace": "default", "name": "c000"},
    });
    assert_eq!(client.post(events, &event)?.status, 201);
    let before = everything(&client)?;
    let last_version = version(&client.get(CONFIG_MAPS)?.json()?)?;
    server.terminate()?;
    server.wait_for_end()?;
    let file = server.directory().join("move.snap");
    let data = data_dir(&server);
    let saved = snapshot_json(&["save", text(&file), "--data-dir", text(&data)])?;
    assert_eq!(saved["expiringKeys"], 1, "{saved}");

    // No server starts before a restore is finished: this is the marker of an interrupted one.
    let marker = json!({"key": "cGludGxlL3NuYXBzaG90LXJlc3RvcmUvcmVnaXN0cnkv", "value": "b3RoZXI="});
    etcd.member(0)?.call("/v3/kv/put", &marker)?;
    let refused =
        Server::start(config()?.flag(servers.as_str())).map(drop).map_err(|error| error.to_string());
    assert!(
        refused.as_ref().is_err_and(|log| log.contains("is being restored into /registry/")),
        "{refused:?}"
    );
    let refused = snapshot_fails(&["restore", text(&file), &servers])?;
    assert!(refused.contains("a restore of another snapshot (SHA-256 other)"), "{refused}");
    etcd.member(0)?
        .call("/v3/kv/deleterange", &json!({"key": "cGludGxlL3NuYXBzaG90LXJlc3RvcmUvcmVnaXN0cnkv"}))?;

    let told = snapshot_json(&["restore", text(&file), &servers])?;
    assert_eq!((&told["keys"], &told["snapshot"]), (&saved["keys"], &saved));
    let mut on_etcd = Server::start(config()?.flag(servers.as_str()))?;
    let client = on_etcd.client()?;
    let there = everything(&client)?;
    assert_same(&without_versions(&there), &without_versions(&before));
    for (name, object) in &there {
        assert!(version(object)? > last_version, "{name}: a client has seen {}", version(object)?);
    }
    assert_eq!(client.get(&format!("{secrets}/s"))?.json()?["data"], secret["data"]);
    assert_eq!(client.get(&format!("{events}/e"))?.json()?["reason"], "Moved");
    let mut watch = client.lines(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={last_version}"))?;
    let gone = watch.next_json()?.ok_or("the watch ended")?;
    assert_eq!((&gone["type"], &gone["object"]["code"]), (&json!("ERROR"), &json!(410)), "{gone}");
    assert_eq!(client.post(CONFIG_MAPS, &config_map("new", 1))?.status, 201);
    assert_eq!(client.delete(&format!("{CONFIG_MAPS}/c001"))?.status, 200);
    let on_etcd_at_last = everything(&client)?;
    on_etcd.terminate()?;
    on_etcd.wait_for_end()?;

    let back = server.directory().join("back.snap");
    snapshot_json(&["save", text(&back), &servers])?;
    fs::rename(data.join("store"), data.join("old-store"))?;
    snapshot_json(&["restore", text(&back), "--data-dir", text(&data)])?;
    server.restart()?;
    let client = server.client()?;
    let there = everything(&client)?;
    assert_same(&there, &on_etcd_at_last);
    assert!(there.contains_key("/api/v1/configmaps/new"));
    Ok(())
}
