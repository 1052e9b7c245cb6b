//! Clients that make random requests.

use super::{
    form::{self, Form},
    history::{Answer, Call, History, Operation, Read},
    random::Random,
    resource::{
        FINALIZER, GROUPS, NAMES, Resource, Selection, has_finalizers, is_terminating, name, tags, uid,
        version,
    },
};
use crate::Result;
use pintle_e2e::PATIENCE;
use pintle_harness::{BusyClient, Client, Connection, Response, Server, wait_for};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, RwLock, RwLockWriteGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

/// How to reach the servers: a restarted one listens on another port.
#[derive(Default)]
pub(super) struct Clients {
    clients: Mutex<Vec<Client>>,
    /// The connections that watches share.
    shared: Mutex<HashMap<usize, Arc<BusyClient>>>,
    /// Held by each request, and by a pause of all.
    gate: RwLock<()>,
    /// How far the recorders have come.
    reached: Mutex<HashMap<(usize, Resource), u64>>,
    /// The versions of the last writes of each resource; 0 before them.
    ends: [AtomicU64; Resource::ALL.len()],
}

impl Clients {
    pub(super) fn new(servers: &[Server]) -> Result<Clients> {
        let clients = Clients::default();
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

    /// A connection to the server for many watches.
    pub(super) fn shared(&self, server: usize) -> Result<Arc<BusyClient>> {
        let mut shared = self.shared.lock().unwrap();
        if let Some(client) = shared.get(&server) {
            return Ok(Arc::clone(client));
        }
        let client = Arc::new(BusyClient::connect(&self.get(server))?);
        shared.insert(server, Arc::clone(&client));
        Ok(client)
    }

    /// Closes the shared connection after its last watch.
    pub(super) fn forget_shared(&self, server: usize) {
        self.shared.lock().unwrap().remove(&server);
    }

    /// Waits until the server answers requests again, or for as long as a start may take.
    pub(super) fn wait(&self, server: usize) {
        let _ = wait_for("the server", PATIENCE, || self.get(server).get("/readyz").ok());
    }

    /// Writes an object of each resource. Returns their versions.
    fn mark(&self, history: &History) -> Result<[u64; Resource::ALL.len()]> {
        let mut versions = [0; Resource::ALL.len()];
        for (resource, version) in Resource::ALL.into_iter().zip(&mut versions) {
            let tag = format!("mark-{}", history.newest());
            let object = resource.generated(&tag, GROUPS[0], &BTreeMap::new());
            let begun = Instant::now();
            let marked = wait_for("a mark", PATIENCE, || {
                self.get(0).post(&resource.collection(), &object).ok().filter(|answer| answer.status == 201)
            })?;
            let marked = history.see(resource, Form::PLAIN, marked.json()?);
            *version = super::resource::version(&marked);
            let call = Call::Generate { tag, values: BTreeMap::new() };
            let (ended, answer) = (Instant::now(), Answer::Object(*version));
            history.add(Operation {
                client: 0,
                server: 0,
                resource,
                call,
                begun,
                ended,
                answer,
                is_protobuf: false,
            });
        }
        Ok(versions)
    }

    /// Lets the recorders end.
    pub(super) fn end(&self, history: &History) -> Result {
        for (version, end) in self.mark(history)?.into_iter().zip(&self.ends) {
            end.store(version, Ordering::Release);
        }
        Ok(())
    }

    /// Lets no client begin a request, and waits until the recorders have all events.
    pub(super) fn pause(&self, history: &History) -> Result<RwLockWriteGuard<'_, ()>> {
        let paused = self.gate.write().unwrap();
        let marks = self.mark(history)?;
        wait_for("the recorders", PATIENCE, || {
            let reached = self.reached.lock().unwrap();
            reached.iter().all(|((_, resource), version)| *version >= marks[*resource as usize]).then_some(())
        })?;
        Ok(paused)
    }

    /// Notes how far a recorder has come.
    pub(super) fn reach(&self, server: usize, resource: Resource, version: u64) {
        self.reached.lock().unwrap().insert((server, resource), version);
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
            let _gate = self.clients.gate.read().unwrap();
            let begun = Instant::now();
            let operation = match call {
                Call::List { selection, .. } => self.list(server, resource, call, selection, begun),
                call => {
                    let form = match call {
                        // A deletion is answered with an object or a Status.
                        Call::Delete { .. } => Form::PLAIN,
                        _ => Form::random_of(&mut self.random, resource),
                    };
                    let answer = self.ask(server, resource, &call, form);
                    Operation {
                        client: self.number,
                        server,
                        resource,
                        call,
                        begun,
                        ended: Instant::now(),
                        answer,
                        is_protobuf: form.is_protobuf,
                    }
                }
            };
            self.history.add(operation);
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
        let selection = Selection::random(&mut self.random, resource);
        match self.random.below(100) {
            0..14 => Call::Create { name, tag, values },
            14 => Call::Generate { tag, values },
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
            58..62 if known.is_some_and(has_finalizers) => Call::Release { name, tag },
            58..68 => Call::Delete { name, version: seen.filter(|_| self.random.chance(50)) },
            68 => Call::DeleteMany { selection },
            69..80 => Call::Get {
                name,
                version: self.random.chance(40).then(|| self.history.past(&mut self.random)),
            },
            _ => {
                let read = match self.random.below(4) {
                    0 | 1 => Read::Newest,
                    2 => Read::NotOlderThan(self.history.past(&mut self.random)),
                    _ => Read::Exact(self.history.past(&mut self.random).max(1)),
                };
                Call::List { read, selection }
            }
        }
    }

    /// Sends a request on the client's connection; `None` without a response.
    fn send(
        &mut self,
        server: usize,
        method: &str,
        path: &str,
        media_types: [&str; 2],
        body: &Value,
    ) -> Option<Response> {
        let headers = [("content-type", media_types[0]), ("accept", media_types[1])];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let connection = &mut self.connections[server];
        if connection.is_none() {
            *connection = self.clients.get(server).connect().ok();
            if connection.is_none() {
                self.clients.wait(server);
                return None;
            }
        }
        let answer = connection.as_mut()?.request(method, path, &headers, body.as_bytes());
        if answer.is_err() {
            *connection = None;
            self.clients.wait(server);
        }
        answer.ok()
    }

    fn ask(&mut self, server: usize, resource: Resource, call: &Call, form: Form) -> Answer {
        let name = call.name().unwrap_or_default();
        let (collection, path) = (resource.collection(), format!("{}/{name}", resource.collection()));
        let is_held = self.random.chance(25);
        let held = |mut object: Value| {
            if is_held {
                object["metadata"]["finalizers"] = json!([FINALIZER]);
            }
            object
        };
        let group = self.random.pick(&GROUPS);
        let annotation = |tag: &str| json!({"annotations": {"tag": tag}});
        let json = "application/json";
        let merge = "application/merge-patch+json";
        let (method, path, media_type, body) = match call {
            Call::Create { tag, values, .. } => {
                ("POST", collection, json, held(resource.object(name, tag, group, values)))
            }
            Call::Generate { tag, values } => {
                ("POST", collection, json, resource.generated(tag, group, values))
            }
            Call::Update { tag, values, version, .. } => {
                let mut object = held(resource.object(name, tag, group, values));
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
            Call::Release { tag, .. } => {
                let mut metadata = annotation(tag);
                metadata["finalizers"] = Value::Null;
                ("PATCH", path, merge, json!({"metadata": metadata}))
            }
            Call::DeleteMany { selection } => {
                ("DELETE", format!("{collection}?{}", selection.query()), json, Value::Null)
            }
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
        let suffix = if matches!(call, Call::DeleteMany { .. }) { "List" } else { "" };
        let separator = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{separator}{}", form.query());
        let media_types = [media_type, &form.media_type(suffix)];
        let Some(response) = self.send(server, method, &path, media_types, &body) else {
            return Answer::Unknown;
        };
        match response.status {
            200 | 201 => {
                let mut object = form::read(&response).unwrap();
                if matches!(call, Call::DeleteMany { .. }) {
                    let version = version(&object);
                    let items = form.objects(&mut object).into_iter().map(|item| {
                        let item = self.history.see(resource, form, item);
                        (super::resource::name(&item).to_owned(), super::resource::version(&item))
                    });
                    return Answer::Items(version, items.collect());
                }
                if object["kind"] == "Status" {
                    return Answer::Deleted(object["details"]["uid"].as_str().unwrap().to_owned());
                }
                let object = form.objects(&mut object).remove(0);
                if is_terminating(&object) && !has_finalizers(&object) {
                    // The object as it would be was never stored.
                    return Answer::Deleted(uid(&object).to_owned());
                }
                let object = self.history.see(resource, form, object);
                let version = version(&object);
                if form.is_whole && !name.is_empty() {
                    self.known.insert((resource, name), object);
                }
                Answer::Object(version)
            }
            status if status >= 500 => Answer::Unknown,
            status => Answer::Refused(status),
        }
    }

    /// Reads a list, in pages or not. When a page was compacted, the rest is another call.
    fn list(
        &mut self,
        server: usize,
        resource: Resource,
        call: Call,
        selection: Selection,
        mut begun: Instant,
    ) -> Operation {
        let Call::List { mut read, .. } = call else { unreachable!() };
        let form = Form::random_of(&mut self.random, resource);
        let media_types = ["application/json", &form.media_type("List")];
        let limit = self.random.chance(50).then(|| format!("&limit={}", 1 + self.random.below(2)));
        let matches = match (&read, &limit, self.random.chance(50)) {
            // The meaning of a version by itself. A list of one name has no pages.
            (Read::NotOlderThan(_), None, true) => "",
            (Read::Exact(_), Some(_), true) if !matches!(selection, Selection::Name(_)) => "",
            (Read::Exact(_), ..) => "&resourceVersionMatch=Exact",
            (Read::NotOlderThan(_), ..) => "&resourceVersionMatch=NotOlderThan",
            (Read::Newest | Read::Rest(_), ..) => "",
        };
        let mut query = match read {
            Read::NotOlderThan(version) | Read::Exact(version) => {
                format!("&resourceVersion={version}{matches}")
            }
            Read::Newest | Read::Rest(_) => String::new(),
        };
        let fixed = format!("{}{}{}", form.query(), selection.query(), limit.unwrap_or_default());
        let (mut items, mut at, mut last) = (BTreeMap::new(), None, String::new());
        let (number, history) = (self.number, self.history);
        let operation = |read: &Read, begun, answer| {
            let call = Call::List { read: read.clone(), selection };
            let (ended, is_protobuf) = (Instant::now(), form.is_protobuf);
            Operation { client: number, server, resource, call, begun, ended, answer, is_protobuf }
        };
        loop {
            // A page may come from another server than the one before.
            let server = match query.contains("continue") {
                false => server,
                true => self.random.below(self.connections.len() as u64) as usize,
            };
            let path = format!("{}?{fixed}{query}", resource.collection());
            let Some(response) = self.send(server, "GET", &path, media_types, &Value::Null) else {
                return operation(&read, begun, Answer::Unknown);
            };
            let mut list = match response.status {
                200 | 410 => form::read(&response).unwrap(),
                status if status >= 500 => return operation(&read, begun, Answer::Unknown),
                status => return operation(&read, begun, Answer::Refused(status)),
            };
            let token = list["metadata"]["continue"].as_str().unwrap_or_default();
            query = format!("&continue={token}");
            let has_more = !token.is_empty();
            if response.status == 410 {
                let expired = match (&read, at) {
                    (_, Some(at)) => Answer::Expired(at),
                    (Read::Exact(version), None) => Answer::Expired(*version),
                    _ => Answer::Refused(410),
                };
                let operation = operation(&read, begun, expired);
                if !has_more {
                    return operation;
                }
                history.add(operation);
                (read, begun, at) = (Read::Rest(last.clone()), Instant::now(), None);
                items.clear();
                continue;
            }
            let version = version(&list);
            if at.is_some_and(|at| at != version) {
                history.violation(format!("a page at {version} continues a list at {at:?}: {path}"));
            }
            at = Some(version);
            for item in form.objects(&mut list) {
                let item = history.see(resource, form, item);
                last = name(&item).to_owned();
                if items.insert(last.clone(), super::resource::version(&item)).is_some() {
                    history.violation(format!("{path} repeats {} {}", name(&item), uid(&item)));
                }
            }
            if !has_more {
                return operation(&read, begun, Answer::Items(version, items));
            }
        }
    }
}
