//! Clients that make random requests.

use super::{
    history::{Answer, Call, History, Operation, Read},
    random::Random,
    resource::{GROUPS, NAMES, Resource, name, tags, uid, version},
};
use crate::Result;
use pintle_e2e::PATIENCE;
use pintle_harness::{Client, Connection, Response, Server, wait_for};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

/// How to reach the servers: a restarted one listens on another port.
pub(super) struct Clients {
    clients: Mutex<Vec<Client>>,
    /// The versions of the last writes of each resource; 0 before them.
    ends: [AtomicU64; Resource::ALL.len()],
}

impl Clients {
    pub(super) fn new(servers: &[Server]) -> Result<Clients> {
        let clients = Clients { clients: Mutex::default(), ends: Default::default() };
        clients.set(servers)?;
        Ok(clients)
    }

    pub(super) fn set(&self, servers: &[Server]) -> Result {
        *self.clients.lock().unwrap() = servers.iter().map(Server::client).collect::<Result<_>>()?;
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.clients.lock().unwrap().len()
    }

    pub(super) fn get(&self, server: usize) -> Client {
        self.clients.lock().unwrap()[server].clone()
    }

    /// Waits until the server answers requests again, or for as long as a start may take.
    pub(super) fn wait(&self, server: usize) {
        let _ = wait_for("the server", PATIENCE, || self.get(server).get("/readyz").ok());
    }

    /// Writes an object of each resource, at which the recorders end.
    pub(super) fn end(&self, history: &History) -> Result {
        for (resource, end) in Resource::ALL.into_iter().zip(&self.ends) {
            let (path, tag) = (resource.collection(), "end".to_owned());
            let object = resource.object("end", &tag, GROUPS[0], &BTreeMap::new());
            let begun = Instant::now();
            let last = wait_for("a last write", PATIENCE, || {
                self.get(0).post(&path, &object).ok().filter(|answer| answer.status == 201)
            })?;
            let last = history.see(resource, last.json()?);
            let call = Call::Create { name: "end", tag, values: BTreeMap::new() };
            let answer = Answer::Object(version(&last));
            let ended = Instant::now();
            history.add(Operation { client: 0, server: 0, resource, call, begun, ended, answer });
            end.store(version(&last), Ordering::Release);
        }
        Ok(())
    }

    /// Ends the recorders where they are, if there is no last write.
    pub(super) fn give_up(&self) {
        for end in &self.ends {
            let _ = end.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// Whether this version is that of the last write, or later.
    pub(super) fn is_end(&self, resource: Resource, version: u64) -> bool {
        let end = self.ends[resource as usize].load(Ordering::Acquire);
        end != 0 && version >= end
    }
}

/// A client with a connection to each server.
pub(super) struct RandomClient<'a> {
    number: usize,
    random: Random,
    clients: &'a Clients,
    history: &'a History,
    connections: Vec<Option<Connection>>,
    /// The objects as this client saw them last. Others may have written them since.
    known: HashMap<(Resource, &'static str), Value>,
    writes: u64,
}

impl<'a> RandomClient<'a> {
    pub(super) fn new(
        number: usize,
        seed: u64,
        clients: &'a Clients,
        history: &'a History,
    ) -> RandomClient<'a> {
        RandomClient {
            number,
            random: Random::new(seed, number),
            clients,
            history,
            connections: (0..clients.len()).map(|_| None).collect(),
            known: HashMap::new(),
            writes: 0,
        }
    }

    pub(super) fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Acquire) {
            let server = self.random.below(self.connections.len() as u64) as usize;
            let resource = self.random.pick(&Resource::ALL);
            let call = self.call(resource);
            let begun = Instant::now();
            let answer = match &call {
                Call::List { read, group } => self.list(server, resource, *read, *group),
                call => self.ask(server, resource, call),
            };
            let (client, ended) = (self.number, Instant::now());
            self.history.add(Operation { client, server, resource, call, begun, ended, answer });
        }
    }

    fn call(&mut self, resource: Resource) -> Call {
        let name = self.random.pick(&NAMES);
        self.writes += 1;
        let tag = format!("{}-{}", self.number, self.writes);
        let count = self.random.below(3);
        let values = (0..count).map(|key| (format!("key-{key}"), tag.clone())).collect();
        let known = self.known.get(&(resource, name));
        let seen = known.map(version);
        match self.random.below(100) {
            0..15 => Call::Create { name, tag, values },
            15..30 if seen.is_some() => Call::Update { name, tag, values, version: seen },
            // Custom resources are not updated without a version.
            30..35 if resource == Resource::ConfigMaps => Call::Update { name, tag, values, version: None },
            35..45 => {
                let value = (format!("key-{}", self.random.below(3)), tag.clone());
                Call::Merge { name, tag, value }
            }
            45..53 if let Some([Some(expected), _]) = known.map(tags) => {
                Call::Test { name, tag, expected: expected.to_owned() }
            }
            53..58 if resource == Resource::Widgets => Call::Status { name, tag },
            58..68 => Call::Delete { name, version: seen.filter(|_| self.random.chance(50)) },
            68..80 => Call::Get { name, version: self.random.chance(40).then(|| self.past()) },
            _ => {
                let read = match self.random.below(5) {
                    0 | 1 => Read::Newest,
                    2 => Read::NotOlderThan(self.past()),
                    3 => Read::Exact(self.past().max(1)),
                    _ => Read::Pages,
                };
                let group = self.random.chance(40).then(|| self.random.pick(&GROUPS));
                Call::List { read, group }
            }
        }
    }

    /// A version that was seen, or 0.
    fn past(&mut self) -> u64 {
        let back = [0, 0, 1, 10, u64::MAX];
        self.history.newest().saturating_sub(self.random.pick(&back))
    }

    /// Sends a request on the client's connection; `None` without a response.
    fn send(
        &mut self,
        server: usize,
        method: &str,
        path: &str,
        media_type: &str,
        body: &Value,
    ) -> Option<Response> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let connection = &mut self.connections[server];
        if connection.is_none() {
            *connection = self.clients.get(server).connect().ok();
            if connection.is_none() {
                self.clients.wait(server);
                return None;
            }
        }
        let answer =
            connection.as_mut()?.request(method, path, &[("content-type", media_type)], body.as_bytes());
        if answer.is_err() {
            *connection = None;
            self.clients.wait(server);
        }
        answer.ok()
    }

    fn ask(&mut self, server: usize, resource: Resource, call: &Call) -> Answer {
        let name = call.name().unwrap();
        let (collection, path) = (resource.collection(), format!("{}/{name}", resource.collection()));
        let group = self.random.pick(&GROUPS);
        let annotation = |tag: &str| json!({"annotations": {"tag": tag}});
        let json = "application/json";
        let merge = "application/merge-patch+json";
        let (method, path, media_type, body) = match call {
            Call::Create { tag, values, .. } => {
                ("POST", collection, json, resource.object(name, tag, group, values))
            }
            Call::Update { tag, values, version, .. } => {
                let mut object = resource.object(name, tag, group, values);
                if let Some(version) = version {
                    object["metadata"]["resourceVersion"] = version.to_string().into();
                }
                ("PUT", path, json, object)
            }
            Call::Merge { tag, value, .. } => {
                let mut patch = resource.values(&BTreeMap::from([value.clone()]));
                patch["metadata"] = annotation(tag);
                ("PATCH", path, merge, patch)
            }
            Call::Test { tag, expected, .. } => {
                let at = "/metadata/annotations/tag";
                let patch = json!([{"op": "test", "path": at, "value": expected},
                    {"op": "replace", "path": at, "value": tag}]);
                ("PATCH", path, "application/json-patch+json", patch)
            }
            Call::Status { tag, .. } => ("PATCH", path + "/status", merge, json!({"status": {"tag": tag}})),
            Call::Delete { version, .. } => {
                let version = version.map(|version| version.to_string());
                ("DELETE", path, json, json!({"preconditions": {"resourceVersion": version}}))
            }
            Call::Get { version: None, .. } => ("GET", path, json, Value::Null),
            Call::Get { version: Some(version), .. } => {
                ("GET", format!("{path}?resourceVersion={version}"), json, Value::Null)
            }
            Call::List { .. } => return Answer::Unknown,
        };
        let Some(response) = self.send(server, method, &path, media_type, &body) else {
            return Answer::Unknown;
        };
        match response.status {
            200 | 201 => {
                let object = response.json().unwrap();
                if matches!(call, Call::Delete { .. }) {
                    return Answer::Deleted(object["details"]["uid"].as_str().unwrap().to_owned());
                }
                let object = self.history.see(resource, object);
                let version = version(&object);
                self.known.insert((resource, name), object);
                Answer::Object(version)
            }
            status if status >= 500 => Answer::Unknown,
            status => Answer::Refused(status),
        }
    }

    fn list(&mut self, server: usize, resource: Resource, read: Read, group: Option<&str>) -> Answer {
        let path = resource.collection();
        let group = group.map(|group| format!("&labelSelector=group%3D{group}")).unwrap_or_default();
        let mut query = match read {
            Read::Newest => String::new(),
            Read::NotOlderThan(version) => format!("resourceVersion={version}"),
            Read::Exact(version) => format!("resourceVersion={version}&resourceVersionMatch=Exact"),
            Read::Pages => format!("limit={}", 1 + self.random.below(2)),
        };
        let limit = query.clone();
        let (mut items, mut at) = (BTreeMap::new(), None);
        loop {
            // A page may come from another server than the one before.
            let server = match at {
                None => server,
                Some(_) => self.random.below(self.connections.len() as u64) as usize,
            };
            let path = format!("{path}?{query}{group}");
            let Some(response) = self.send(server, "GET", &path, "application/json", &Value::Null) else {
                return Answer::Unknown;
            };
            match response.status {
                200 => {}
                status if status >= 500 => return Answer::Unknown,
                status => return Answer::Refused(status),
            }
            let list = response.json().unwrap();
            let version = version(&list);
            if at.is_some_and(|at| at != version) {
                self.history.violation(format!("a page at {version} continues a list at {at:?}: {path}"));
            }
            at = Some(version);
            for item in list["items"].as_array().unwrap() {
                let item = self.history.see(resource, item.clone());
                if items.insert(name(&item).to_owned(), super::resource::version(&item)).is_some() {
                    self.history.violation(format!("{path} repeats {} {}", name(&item), uid(&item)));
                }
            }
            match list["metadata"]["continue"].as_str() {
                Some(token) if !token.is_empty() => query = format!("{limit}&continue={token}"),
                _ => return Answer::Items(version, items),
            }
        }
    }
}
