//! Tests several servers on one etcd at once: every server gives the view of one cluster.

use crate::Result;
use pintle_e2e::{PATIENCE, config};
use pintle_harness::{Client, Connection, Etcd, Response, Server, wait_for};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
    time::Duration,
};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints/kubernetes";
const ENDPOINT_SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";

/// Two servers on one etcd; dropping kills them before etcd.
struct Cluster {
    one: Server,
    two: Server,
    _etcd: Etcd,
}

/// Advertised addresses; the clients of the tests use loopback.
const ADDRESSES: [&str; 2] = ["192.0.2.10", "192.0.2.9"];

impl Cluster {
    /// Starts both servers at once on an empty etcd, so that they race to create the same objects.
    fn start() -> Result<Cluster> {
        let etcd = Etcd::start(1)?;
        let urls = etcd.urls();
        let start = |address: &str| -> Result<Server> {
            let config = config()?
                .flag(format!("--etcd-servers={urls}"))
                .flag(format!("--advertise-address={address}"));
            Server::start(config)
        };
        let (one, two) = thread::scope(|scope| {
            let one = scope.spawn(|| start(ADDRESSES[0]));
            let two = start(ADDRESSES[1]);
            (one.join().unwrap(), two)
        });
        Ok(Cluster { one: one?, two: two?, _etcd: etcd })
    }

    fn clients(&self) -> Result<[Client; 2]> {
        Ok([self.one.client()?, self.two.client()?])
    }
}

fn config_map(name: &str, count: u64) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"count": count.to_string()}
    })
}

fn send(connection: &mut Connection, method: &str, path: &str, body: &Value) -> Result<Response> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    connection.request(method, path, &[("content-type", "application/json")], body.as_bytes())
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

#[test]
fn counters_lose_no_increment() -> Result {
    const WRITERS: usize = 4;
    const INCREMENTS: usize = 20;
    let cluster = Cluster::start()?;
    let clients = cluster.clients()?;
    let path = format!("{CONFIG_MAPS}/counter");
    assert_eq!(clients[0].post(CONFIG_MAPS, &config_map("counter", 0))?.status, 201);

    // Each update has the revision that was read, which the other server may have replaced.
    let increment = |client: &Client| -> Result<usize> {
        let mut connection = client.connect()?;
        let mut conflicts = 0;
        for _ in 0..INCREMENTS {
            loop {
                let mut object = send(&mut connection, "GET", &path, &Value::Null)?.json()?;
                let count: u64 = object["data"]["count"].as_str().unwrap().parse()?;
                object["data"]["count"] = (count + 1).to_string().into();
                let answer = send(&mut connection, "PUT", &path, &object)?;
                match answer.status {
                    200 => break,
                    409 => {
                        assert_eq!(answer.json()?["reason"], "Conflict");
                        conflicts += 1;
                    }
                    status => return Err(format!("{status}: {}", answer.text()).into()),
                }
            }
        }
        Ok(conflicts)
    };
    let conflicts: usize = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let client = &clients[writer % 2];
                scope.spawn(move || increment(client))
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum::<Result<usize>>()
    })?;
    for client in &clients {
        let counter = client.get(&path)?.json()?;
        assert_eq!(counter["data"]["count"], (WRITERS * INCREMENTS).to_string());
    }
    assert!(conflicts > 0, "the writers never met, so nothing was tested");

    // A patch is retried on the other server's write, and succeeds.
    thread::scope(|scope| {
        for (server, client) in clients.iter().enumerate() {
            let path = &path;
            scope.spawn(move || {
                for number in 0..INCREMENTS {
                    let body = json!({"data": {format!("of-{server}-{number}"): "x"}}).to_string();
                    let headers = [("content-type", "application/merge-patch+json")];
                    let answer = client.request("PATCH", path, &headers, body.as_bytes()).unwrap();
                    assert_eq!(answer.status, 200, "{}", answer.text());
                }
            });
        }
    });
    let patched = clients[0].get(&path)?.json()?;
    assert_eq!(patched["data"].as_object().unwrap().len(), 1 + 2 * INCREMENTS);
    Ok(())
}

#[test]
fn an_object_is_created_once_and_deleted_once() -> Result {
    let cluster = Cluster::start()?;
    let clients = cluster.clients()?;
    // The responses of both to the same request at the same time.
    let both = |method: &str, path: &str, body: &Value| -> Vec<u16> {
        thread::scope(|scope| {
            let ask = |client: &Client| {
                let mut connection = client.connect().unwrap();
                send(&mut connection, method, path, body).unwrap().status
            };
            let (first, second) = (&clients[0], &clients[1]);
            let first = scope.spawn(move || ask(first));
            let second = ask(second);
            let mut answers = vec![first.join().unwrap(), second];
            answers.sort_unstable();
            answers
        })
    };
    for number in 0..20 {
        let name = format!("raced-{number}");
        assert_eq!(both("POST", CONFIG_MAPS, &config_map(&name, 0)), [201, 409], "{name}");
        assert_eq!(both("DELETE", &format!("{CONFIG_MAPS}/{name}"), &Value::Null), [200, 404], "{name}");
    }
    Ok(())
}

#[test]
fn watches_see_the_writes_of_all_servers_once_and_in_order() -> Result {
    const WRITES: u64 = 30;
    let cluster = Cluster::start()?;
    let clients = cluster.clients()?;
    let start = clients[1].get(CONFIG_MAPS)?.json()?["metadata"]["resourceVersion"].clone();
    let watch = format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", start.as_str().unwrap());
    let mut watches = [clients[0].lines(&watch)?, clients[1].lines(&watch)?];

    // The acknowledged writes, by revision.
    let write = |client: &Client, writer: usize| -> Result<BTreeMap<u64, (String, String)>> {
        let mut connection = client.connect()?;
        let mut written = BTreeMap::new();
        let name = format!("w{writer}");
        let path = format!("{CONFIG_MAPS}/{name}");
        for number in 0..WRITES {
            let (kind, method, path) = match number % 10 {
                0 => ("ADDED", "POST", CONFIG_MAPS),
                _ => ("MODIFIED", "PUT", path.as_str()),
            };
            let answer = send(&mut connection, method, path, &config_map(&name, number))?;
            assert!(matches!(answer.status, 200 | 201), "{}", answer.text());
            written.insert(revision(&answer.json()?), (kind.to_owned(), name.clone()));
            if number % 10 == 9 {
                // A Status does not have the revision of the deletion: the watch events do.
                let answer = send(&mut connection, "DELETE", &format!("{CONFIG_MAPS}/{name}"), &Value::Null)?;
                assert_eq!(answer.status, 200, "{}", answer.text());
            }
        }
        Ok(written)
    };
    let mut acknowledged = BTreeMap::new();
    let parts = thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let client = &clients[writer % 2];
                scope.spawn(move || write(client, writer))
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Result<Vec<_>>>()
    })?;
    parts.into_iter().for_each(|part| acknowledged.extend(part));
    assert_eq!(clients[0].post(CONFIG_MAPS, &config_map("last", 0))?.status, 201);

    let mut seen = Vec::new();
    for watch in &mut watches {
        let mut events = Vec::new();
        while let Some(event) = watch.next_json()? {
            let object = &event["object"];
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            if name == "last" {
                break;
            }
            events.push((revision(object), event["type"].as_str().unwrap().to_owned(), name));
        }
        assert!(events.is_sorted_by(|one, next| one.0 < next.0), "{events:?}");
        let writes = events.iter().filter(|event| event.1 != "DELETED");
        let writes: BTreeMap<u64, (String, String)> =
            writes.map(|(revision, kind, name)| (*revision, (kind.clone(), name.clone()))).collect();
        assert_eq!(writes, acknowledged);
        assert_eq!(events.len() - writes.len(), 4 * 3, "deletions");
        seen.push(events);
    }
    assert_eq!(seen[0], seen[1]);
    Ok(())
}

#[test]
fn reads_see_what_another_server_acknowledged() -> Result {
    let cluster = Cluster::start()?;
    let clients = cluster.clients()?;
    let mut connections = [clients[0].connect()?, clients[1].connect()?];
    for number in 0..100 {
        let name = format!("c{number}");
        let path = format!("{CONFIG_MAPS}/{name}");
        let (writer, reader) = (number % 2, 1 - number % 2);
        let created = send(&mut connections[writer], "POST", CONFIG_MAPS, &config_map(&name, 0))?;
        assert_eq!(created.status, 201, "{}", created.text());
        let created = created.json()?;
        let read = send(&mut connections[reader], "GET", &path, &Value::Null)?;
        assert_eq!((read.status, read.json()?), (200, created.clone()));
        let list = send(&mut connections[reader], "GET", CONFIG_MAPS, &Value::Null)?.json()?;
        assert!(list["items"].as_array().unwrap().iter().any(|item| item["metadata"]["name"] == *name));
        // The other server updates at once an object that it knows only from its watch.
        let mut changed = created;
        changed["data"]["count"] = "1".into();
        let changed = send(&mut connections[reader], "PUT", &path, &changed)?;
        assert_eq!(changed.status, 200, "{}", changed.text());
        let read = send(&mut connections[writer], "GET", &path, &Value::Null)?;
        assert_eq!(read.json()?, changed.json()?);
        let deleted = send(&mut connections[writer], "DELETE", &path, &Value::Null)?;
        assert_eq!(deleted.status, 200, "{}", deleted.text());
        let read = send(&mut connections[reader], "GET", &path, &Value::Null)?;
        assert_eq!(read.status, 404, "{}", read.text());
        // The same holds for a namespace: objects can be created in it at once.
        if number % 10 == 0 {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let made = send(&mut connections[writer], "POST", "/api/v1/namespaces", &namespace)?;
            assert_eq!(made.status, 201, "{}", made.text());
            let inside = format!("/api/v1/namespaces/{name}/configmaps");
            let created = send(&mut connections[reader], "POST", &inside, &config_map("inside", 0))?;
            assert_eq!(created.status, 201, "{}", created.text());
        }
    }
    Ok(())
}

#[test]
fn lists_and_watches_go_on_at_another_server() -> Result {
    let cluster = Cluster::start()?;
    let clients = cluster.clients()?;
    let names: Vec<String> = (0..10).map(|number| format!("c{number}")).collect();
    for name in &names {
        assert_eq!(clients[0].post(CONFIG_MAPS, &config_map(name, 0))?.status, 201);
    }
    let first = clients[0].get(&format!("{CONFIG_MAPS}?limit=4"))?.json()?;
    let revision = first["metadata"]["resourceVersion"].as_str().unwrap();
    // An object that is written after the first page is in no page.
    assert_eq!(clients[0].post(CONFIG_MAPS, &config_map("c9-late", 0))?.status, 201);
    assert_eq!(clients[0].delete(&format!("{CONFIG_MAPS}/c8"))?.status, 200);
    let mut listed = Vec::new();
    let mut page = first.clone();
    for server in [1, 0, 1, 0] {
        let items = page["items"].as_array().unwrap().iter();
        listed.extend(items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()));
        assert_eq!(page["metadata"]["resourceVersion"], revision);
        let Some(token) = page["metadata"]["continue"].as_str() else { break };
        page = clients[server].get(&format!("{CONFIG_MAPS}?limit=4&continue={token}"))?.json()?;
    }
    assert_eq!(listed, names);

    let mut watch = clients[1].lines(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={revision}"))?;
    for expected in [("ADDED", "c9-late"), ("DELETED", "c8")] {
        let event = watch.next_json()?.ok_or("the watch ended")?;
        let name = event["object"]["metadata"]["name"].as_str().unwrap();
        assert_eq!((event["type"].as_str().unwrap(), name), expected);
    }
    Ok(())
}

#[test]
fn services_get_addresses_and_ports_of_their_own() -> Result {
    const SERVICES_EACH: usize = 15;
    let cluster = Cluster::start()?;
    let clients = cluster.clients()?;
    let create = |client: &Client, server: usize| -> Result<Vec<(String, u64)>> {
        let mut connection = client.connect()?;
        let mut taken = Vec::new();
        for number in 0..SERVICES_EACH {
            let service = json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": format!("s{server}-{number}")},
                "spec": {"type": "NodePort", "ports": [{"port": 80}]}
            });
            let answer = send(&mut connection, "POST", SERVICES, &service)?;
            assert_eq!(answer.status, 201, "{}", answer.text());
            let spec = &answer.json()?["spec"];
            let port = spec["ports"][0]["nodePort"].as_u64().unwrap();
            taken.push((spec["clusterIP"].as_str().unwrap().to_owned(), port));
        }
        Ok(taken)
    };
    let taken = thread::scope(|scope| {
        let writers: Vec<_> = clients
            .iter()
            .enumerate()
            .map(|(server, client)| scope.spawn(move || create(client, server)))
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Result<Vec<_>>>()
    })?
    .concat();
    let addresses: BTreeSet<&String> = taken.iter().map(|(address, _)| address).collect();
    let ports: BTreeSet<u64> = taken.iter().map(|(_, port)| *port).collect();
    assert_eq!((addresses.len(), ports.len()), (2 * SERVICES_EACH, 2 * SERVICES_EACH), "{taken:?}");
    assert!(!addresses.contains(&"10.0.0.1".to_owned()), "that is the kubernetes service's");

    // An allocation of one server is taken for the other, and a released one is free.
    let (address, port) = &taken[0];
    let wanted = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "wanted"},
        "spec": {"type": "NodePort", "clusterIP": address, "ports": [{"port": 80, "nodePort": port}]}
    });
    let refused = clients[1].post(SERVICES, &wanted)?;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert_eq!(clients[0].delete(&format!("{SERVICES}/s0-0"))?.status, 200);
    let accepted = clients[1].post(SERVICES, &wanted)?;
    assert_eq!(accepted.status, 201, "{}", accepted.text());
    Ok(())
}

#[test]
fn dead_servers_leave_the_kubernetes_service() -> Result {
    /// A lease is valid for 15 seconds, and its end is seen within 10.
    const LEASE_PATIENCE: Duration = Duration::from_secs(60);
    let Cluster { one, mut two, _etcd } = Cluster::start()?;
    let client = one.client()?;
    let listed = || -> Option<[Vec<String>; 2]> {
        let texts = |values: Vec<Value>| values.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let endpoints = client.get(ENDPOINTS).ok()?.json().ok()?;
        let addresses = endpoints.pointer("/subsets/0/addresses")?.as_array()?;
        let slice = client.get(ENDPOINT_SLICE).ok()?.json().ok()?;
        let endpoints = slice["endpoints"].as_array()?;
        Some([
            texts(addresses.iter().map(|address| address["ip"].clone()).collect()),
            texts(endpoints.iter().map(|endpoint| endpoint["addresses"][0].clone()).collect()),
        ])
    };
    let wait = |what: &str, patience: Duration, expected: &[&str]| {
        let expected: Vec<String> = expected.iter().map(|&address| address.to_owned()).collect();
        let expected = [expected.clone(), expected];
        wait_for(what, patience, || listed().filter(|listed| *listed == expected).map(drop))
    };
    // The addresses are in the order of their text.
    wait("both servers behind the service", PATIENCE, &ADDRESSES)?;
    two.kill()?;
    // A killed server keeps its lease, so it counts as alive for a while.
    assert_eq!(client.post(CONFIG_MAPS, &config_map("after", 0))?.status, 201);
    assert_eq!(listed().unwrap()[0], ADDRESSES);
    wait("the end of the dead server's lease", LEASE_PATIENCE, &ADDRESSES[..1])?;
    two.restart()?;
    wait("the server's return", PATIENCE, &ADDRESSES)?;
    // A server that shuts down gracefully removes its lease.
    two.terminate()?;
    assert!(two.wait_for_end()?.success());
    assert_eq!(listed().unwrap(), [vec![ADDRESSES[0].to_owned()], vec![ADDRESSES[0].to_owned()]]);
    Ok(())
}
