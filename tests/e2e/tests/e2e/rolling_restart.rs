//! Restarts two servers on one etcd, one after the other, behind a balancer and under load.
//!
//! The balancer is what a health-checking load balancer is: it sends new requests to servers whose `/readyz` says `ok`. Then
//! the shutdown delay keeps a server serving for longer than the balancer needs, and no request fails.

use crate::Result;
use pintle_e2e::{PATIENCE, config};
use pintle_harness::{Client, Connection, Etcd, Server, wait_for};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WRITERS: usize = 6;
/// How often the balancer asks a server. A server without a shutdown delay is gone before the balancer notices.
const HEALTH_INTERVAL: Duration = Duration::from_millis(500);

/// A server as the balancer sees it.
struct Backend {
    client: Client,
    is_ready: AtomicBool,
}

/// The balancer, its clients, and what they have got.
#[derive(Default)]
struct Rollout {
    backends: Mutex<Vec<Arc<Backend>>>,
    next: AtomicUsize,
    /// Writers stop.
    is_written: AtomicBool,
    is_over: AtomicBool,
    /// How often each created object was acknowledged.
    created: Mutex<BTreeMap<String, usize>>,
    /// How often each created object was watched.
    watched: Mutex<BTreeMap<String, usize>>,
    lost: Mutex<Vec<String>>,
    /// The watches, and their events.
    log: Mutex<Vec<String>>,
    requests: AtomicUsize,
}

impl Rollout {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    fn lose(&self, what: String) {
        self.lost.lock().unwrap().push(what);
    }

    /// Asks a server for its readiness until it is gone.
    fn check(&self, backend: &Backend) {
        let mut connection = None;
        while !self.is_over() {
            let mut open = match connection.take() {
                Some(open) => open,
                None => match backend.client.connect() {
                    Ok(open) => open,
                    Err(_) => break,
                },
            };
            let answer = open.request("GET", "/readyz", &[], &[]);
            let is_ready = answer.as_ref().is_ok_and(|answer| answer.status == 200);
            backend.is_ready.store(is_ready, Ordering::SeqCst);
            if answer.is_ok_and(|answer| answer.header("connection") != Some("close")) {
                connection = Some(open);
            }
            pause();
        }
        backend.is_ready.store(false, Ordering::SeqCst);
    }

    /// A server that is ready; `None` at the end.
    fn pick(&self) -> Option<Arc<Backend>> {
        while !self.is_over() {
            let backends = self.backends.lock().unwrap().clone();
            let ready: Vec<_> =
                backends.into_iter().filter(|backend| backend.is_ready.load(Ordering::SeqCst)).collect();
            if let Some(backend) = ready.get(self.next.fetch_add(1, Ordering::SeqCst) % ready.len().max(1)) {
                return Some(backend.clone());
            }
            pause();
        }
        None
    }

    /// Creates, reads, updates and deletes until the end. Every request has to succeed.
    fn write(&self, writer: usize) {
        let mut open: Option<(Arc<Backend>, Connection)> = None;
        for number in 0.. {
            if self.is_written.load(Ordering::SeqCst) {
                return;
            }
            let name = format!("w{writer}-{number}");
            let object = |count: u64| {
                let metadata = json!({"name": name});
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"n": count.to_string()}})
                    .to_string()
            };
            let own = format!("{CONFIG_MAPS}/{name}");
            let requests = [
                ("POST", CONFIG_MAPS, object(0), 201),
                ("GET", own.as_str(), String::new(), 200),
                ("PUT", own.as_str(), object(1), 200),
                ("DELETE", own.as_str(), String::new(), 200),
            ];
            for (method, path, body, expected) in requests {
                // A connection is used as long as its server is ready.
                let is_usable = |open: &(Arc<Backend>, Connection)| open.0.is_ready.load(Ordering::SeqCst);
                let (backend, mut connection) = match open.take().filter(is_usable) {
                    Some(open) => open,
                    None => {
                        let Some(backend) = self.pick() else { return };
                        match backend.client.connect() {
                            Ok(connection) => (backend, connection),
                            Err(error) => {
                                return self.lose(format!("connecting for {method} {path}: {error}"));
                            }
                        }
                    }
                };
                let answer = connection.request(
                    method,
                    path,
                    &[("content-type", "application/json")],
                    body.as_bytes(),
                );
                self.requests.fetch_add(1, Ordering::SeqCst);
                match answer {
                    Ok(answer) if answer.status == expected => {
                        if answer.header("connection") != Some("close") {
                            open = Some((backend, connection));
                        }
                    }
                    Ok(answer) => {
                        return self.lose(format!("{method} {path}: {} {}", answer.status, answer.text()));
                    }
                    Err(error) => return self.lose(format!("{method} {path}: {error}")),
                }
                if method == "POST" {
                    *self.created.lock().unwrap().entry(name.clone()).or_default() += 1;
                }
            }
        }
    }

    /// Watches from the last event on, whenever a watch ends. Every watch has to end properly.
    fn watch(&self, mut revision: String) {
        while !self.is_over() {
            let Some(backend) = self.pick() else { return };
            let path = format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=3&resourceVersion={revision}");
            self.log.lock().unwrap().push(format!("a watch after {revision}"));
            let mut lines = match backend.client.lines(&path) {
                Ok(lines) => lines,
                Err(error) => return self.lose(format!("watch: {error}")),
            };
            loop {
                let event = match lines.next_json() {
                    Ok(Some(event)) => event,
                    Ok(None) => break,
                    Err(error) => return self.lose(format!("a watch broke off: {error}")),
                };
                let text = |pointer: &str| event.pointer(pointer).unwrap().as_str().unwrap().to_owned();
                revision = text("/object/metadata/resourceVersion");
                self.log.lock().unwrap().push(format!(
                    "{} {} {revision}",
                    text("/type"),
                    text("/object/metadata/name")
                ));
                if text("/type") == "ADDED" {
                    *self.watched.lock().unwrap().entry(text("/object/metadata/name")).or_default() += 1;
                }
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a balancer asks periodically")]
fn pause() {
    thread::sleep(HEALTH_INTERVAL);
}

#[test]
fn a_rolling_restart_loses_no_request() -> Result {
    let etcd = Etcd::start(1)?;
    let common = config()?
        .flag(format!("--etcd-servers={}", etcd.urls()))
        .flag("--shutdown-delay-duration=2s")
        .flag("--request-timeout=5s");
    let one = common
        .clone()
        .flag("--advertise-address=192.0.2.10")
        .flag("--shutdown-send-retry-after")
        .flag("--shutdown-watch-termination-grace-period=2s");
    let two = common.flag("--advertise-address=192.0.2.9");
    let mut servers = [Server::start(one)?, Server::start(two)?];
    let rollout = Rollout::default();
    let list = servers[0].client()?.get(CONFIG_MAPS)?.json()?;
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    thread::scope(|scope| -> Result {
        let mut writers = Vec::new();
        let ended = (|| -> Result {
            let join = |server: &Server| -> Result {
                let backend = Backend { client: server.client()?, is_ready: AtomicBool::new(false) };
                let backend = Arc::new(backend);
                rollout.backends.lock().unwrap().push(backend.clone());
                let checked = backend.clone();
                let rollout = &rollout;
                scope.spawn(move || rollout.check(&checked));
                wait_for("readiness", PATIENCE, || backend.is_ready.load(Ordering::SeqCst).then_some(()))
            };
            servers.iter().try_for_each(join)?;
            let rollout = &rollout;
            writers.extend((0..WRITERS).map(|writer| scope.spawn(move || rollout.write(writer))));
            scope.spawn(move || rollout.watch(revision));
            let progress = |what: &str| {
                let before = rollout.requests.load(Ordering::SeqCst);
                wait_for(what, PATIENCE, || {
                    let is_lost = !rollout.lost.lock().unwrap().is_empty();
                    (is_lost || rollout.requests.load(Ordering::SeqCst) > before + 200).then_some(())
                })
            };
            for server in &mut servers {
                progress("requests before the restart")?;
                server.terminate()?;
                assert!(server.wait_for_end()?.success());
                progress("requests of one server")?;
                server.restart()?;
                join(server)?;
            }
            progress("requests after the restarts")
        })();
        let is_watched = || {
            let (created, watched) = (rollout.created.lock().unwrap(), rollout.watched.lock().unwrap());
            created.keys().all(|name| watched.contains_key(name)).then_some(())
        };
        // The writers have ended before, so that the watch can reach the last event.
        rollout.is_written.store(true, Ordering::SeqCst);
        rollout.is_over.store(ended.is_err(), Ordering::SeqCst);
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        let caught_up = wait_for("events", PATIENCE, is_watched);
        rollout.is_over.store(true, Ordering::SeqCst);
        ended.and(caught_up)
    })?;
    assert_eq!(*rollout.lost.lock().unwrap(), Vec::<String>::new());
    // Each event once: what the watch did so far, for those that are not.
    let watched = rollout.watched.lock().unwrap();
    let created: BTreeSet<&String> = watched.keys().collect();
    assert!(rollout.created.lock().unwrap().keys().all(|name| created.contains(name)));
    let again: Vec<&String> =
        watched.iter().filter(|(_, times)| **times != 1).map(|(name, _)| name).collect();
    let log = rollout.log.lock().unwrap();
    let is_about = |line: &&String| {
        line.starts_with('a') || again.iter().any(|name| line.contains(&format!(" {name} ")))
    };
    assert!(again.is_empty(), "{again:?} came again: {:#?}", log.iter().filter(is_about).collect::<Vec<_>>());
    Ok(())
}
