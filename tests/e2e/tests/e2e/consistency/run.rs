//! The servers of a run, and its threads.

use super::{
    client::{Clients, RandomClient},
    exercised::missing_requests,
    history::History,
    recorder::Recorder,
    resource::{NAMESPACE, Resource, definition},
    watcher::RandomWatcher,
};
use crate::Result;
use pintle_e2e::PATIENCE;
use pintle_harness::{Server, wait_for};
use serde_json::json;
use std::{
    sync::{
        RwLockWriteGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

const CLIENTS: usize = 6;
const WATCHERS: usize = 4;
/// The number of writes that are acknowledged between two faults.
const WRITES: u64 = 60;

/// Creates the namespace and the definition. Returns a version before every write of the run.
pub(super) fn prepare(servers: &[Server]) -> Result<u64> {
    let client = servers[0].client()?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for (path, object) in [("/api/v1/namespaces", namespace), (definitions, definition())] {
        let created = client.post(path, &object)?;
        assert_eq!(created.status, 201, "{}", created.text());
    }
    for server in servers {
        let client = server.client()?;
        for resource in Resource::ALL {
            wait_for("the resources to be served", PATIENCE, || {
                client.get(&resource.collection()).ok().filter(|answer| answer.status == 200)
            })?;
        }
    }
    let list = client.get(&Resource::ConfigMaps.collection())?.json()?;
    Ok(super::resource::version(&list))
}

/// Stops the clients until the guard is dropped. The recorders have all events then.
pub(super) type Pause<'a> = dyn Fn() -> Result<RwLockWriteGuard<'a, ()>> + 'a;

/// Runs clients and watches on the servers while `fault` is called `rounds` times, each time after some writes, and until
/// they have made all kinds of requests. `fault` returns whether the history before it was lost.
pub(super) fn run(
    seed: u64,
    servers: &mut [Server],
    start: u64,
    rounds: usize,
    compacted: Option<Duration>,
    mut fault: impl FnMut(usize, &mut [Server], &Pause) -> Result<bool>,
) -> Result<(History, Vec<Recorder>)> {
    let (history, stop) = (History::new(compacted), AtomicBool::new(false));
    history.see_version(start);
    let clients = Clients::new(servers)?;
    let mut recorders: Vec<Recorder> = (0..servers.len())
        .flat_map(|server| Resource::ALL.map(|resource| Recorder::new(server, resource, start)))
        .collect();
    let (history_of, clients_of, stop_of) = (&history, &clients, &stop);
    thread::scope(|recording| -> Result {
        for recorder in &mut recorders {
            recording.spawn(move || recorder.run(clients_of, history_of));
        }
        // Recorders end in any case, also after a panic.
        let _end = EndRecorders(clients_of);
        let faults = thread::scope(|scope| -> Result {
            for number in 0..CLIENTS {
                let mut client = RandomClient::new(number, seed, clients_of, history_of);
                scope.spawn(move || client.run(stop_of));
            }
            for number in 0..WATCHERS {
                let mut watcher = RandomWatcher::new(CLIENTS + number, seed, clients_of, history_of);
                scope.spawn(move || watcher.run(stop_of));
            }
            let faults = (0..=rounds).try_for_each(|round| {
                wait_for_writes(history_of, clients_of)?;
                if round == rounds {
                    let is_exercised = || missing_requests(history_of).is_empty().then_some(());
                    // Kinds of requests that are missing after that fail the run.
                    drop(wait_for("all kinds of requests", PATIENCE, is_exercised));
                    return Ok(());
                }
                let is_lost = fault(round, servers, &|| clients_of.pause(history_of))?;
                history_of.faults.lock().unwrap().push((Instant::now(), is_lost));
                clients_of.set(servers)
            });
            stop_of.store(true, Ordering::Release);
            faults
        });
        faults.and_then(|()| clients_of.end(history_of))
    })?;
    Ok((history, recorders))
}

/// Waits for writes, and until the history before them is compacted.
fn wait_for_writes(history: &History, clients: &Clients) -> Result {
    let (newest, goal) = (history.newest(), history.acknowledged() + WRITES);
    let is_reached = || (history.acknowledged() >= goal).then_some(());
    wait_for("writes to be acknowledged", PATIENCE, is_reached)?;
    if history.compacted.is_none() {
        return Ok(());
    }
    let state =
        format!("{}?resourceVersion={newest}&resourceVersionMatch=Exact", Resource::ConfigMaps.collection());
    let is_compacted = || clients.get(0).get(&state).ok().filter(|answer| answer.status == 410).map(drop);
    wait_for("the compaction", PATIENCE, is_compacted)
}

struct EndRecorders<'a>(&'a Clients);

impl Drop for EndRecorders<'_> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}
