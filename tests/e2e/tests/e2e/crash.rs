//! Kills a whole server under load (`kill -9`), repeatedly on one data directory: writers record the acknowledged
//! writes, watches resume at their last revision, and paged lists continue after the restart.
//!
//! `PINTLE_CRASH_KILLS` is the number of kills; `cargo xtask crash` makes more than a test run.

use super::Result;
use pintle_harness::{Client, Server};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

const WRITERS: u64 = 6;
const OBJECTS: u64 = 4;
const WATCHES: usize = 3;
const CONFIG_MAPS: &str = "/api/v1/namespaces/crash/configmaps";

fn kills() -> u64 {
    std::env::var("PINTLE_CRASH_KILLS").map_or(200, |kills| kills.parse().unwrap())
}

/// A write to an object, as a response or an event reported it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Write {
    deleted: bool,
    name: String,
    number: u64,
}

/// The writes so far, over all restarts of the server.
#[derive(Default)]
struct Known {
    /// Acknowledged writes by resource version.
    acknowledged: BTreeMap<u64, Write>,
    /// The last acknowledged write of each object, and the write without a response, if any.
    objects: BTreeMap<String, Object>,
    numbers: u64,
}

#[derive(Default, Clone)]
struct Object {
    /// The resource version and the number; `None` when the object does not exist.
    current: Option<(u64, u64)>,
    /// The possible newer state: a write without a response, with its number.
    doubtful: Option<Write>,
}

fn config_map(name: &str, number: u64, resource_version: Option<u64>) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"number": number.to_string(), "filler": filler(name, number)},
    });
    if let Some(version) = resource_version {
        object["metadata"]["resourceVersion"] = version.to_string().into();
    }
    object
}

/// Text that only this write has.
fn filler(name: &str, number: u64) -> String {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ name.len() as u64;
    let mut text = format!("{name}/{number}/");
    while text.len() < 1_200 {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        text += &format!("{:016x}", state);
    }
    text
}

/// The name, number and resource version of a complete object.
fn read(object: &Value) -> (String, u64, u64) {
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    let number = object["data"]["number"].as_str().unwrap().parse().unwrap();
    assert_eq!(
        object["data"]["filler"],
        filler(&name, number),
        "{name} is half of one write and half of another"
    );
    (name, number, version(object))
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

/// Creates, updates and deletes the objects of one writer until the server is killed.
fn write(client: &Client, writer: u64, known: &Mutex<Known>) {
    let Ok(mut connection) = client.connect() else { return };
    for turn in 0.. {
        let name = format!("o-{writer}-{}", turn % OBJECTS);
        let path = format!("{CONFIG_MAPS}/{name}");
        let (number, current) = {
            let mut known = known.lock().unwrap();
            known.numbers += 1;
            (known.numbers, known.objects.entry(name.clone()).or_default().current)
        };
        let json_type: &[(&str, &str)] = &[("content-type", "application/json")];
        let deleted = current.is_some() && number % 4 == 0;
        let (method, path, body) = match current {
            None => ("POST", CONFIG_MAPS, config_map(&name, number, None)),
            Some(_) if deleted => ("DELETE", path.as_str(), json!({})),
            Some((version, _)) => ("PUT", path.as_str(), config_map(&name, number, Some(version))),
        };
        let write = Write { deleted, name: name.clone(), number };
        known.lock().unwrap().objects.entry(name.clone()).or_default().doubtful = Some(write.clone());
        let Ok(answer) = connection.request(method, path, json_type, body.to_string().as_bytes()) else {
            return;
        };
        assert!(matches!(answer.status, 200 | 201), "{method} {path}: {}", answer.text());
        let mut known = known.lock().unwrap();
        let object = known.objects.get_mut(&name).unwrap();
        object.doubtful = None;
        if deleted {
            // The response does not have the revision of the deletion; the watch events do.
            object.current = None;
        } else {
            let (told, told_number, version) = read(&answer.json().unwrap());
            assert_eq!((told, told_number), (name, number));
            object.current = Some((version, number));
            let twice = known.acknowledged.insert(version, write);
            assert!(twice.is_none(), "{version} was given twice");
        }
    }
}

/// The events of one watch over all restarts of the server.
#[derive(Default)]
struct Watched {
    /// The revision that the watch started from; its events come after it.
    from: u64,
    events: BTreeMap<u64, Write>,
}

impl Watched {
    fn last(&self) -> u64 {
        self.events.last_key_value().map_or(self.from, |(version, _)| *version)
    }

    /// Resumes the watch, and follows it until the server is killed or the event at `until` arrives.
    fn follow(&mut self, client: &Client, until: Option<u64>) {
        let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={}", self.last());
        let Ok(mut lines) = client.lines(&path) else { return };
        while until.is_none_or(|until| self.last() < until) {
            let Ok(Some(event)) = lines.next_json() else { return };
            let kind = event["type"].as_str().unwrap();
            assert!(matches!(kind, "ADDED" | "MODIFIED" | "DELETED"), "{event}");
            let object = &event["object"];
            if object["data"].get("number").is_none() {
                continue;
            }
            let (name, number, version) = read(object);
            assert!(version > self.last(), "{version} after {}: seen twice or out of order", self.last());
            self.events.insert(version, Write { deleted: kind == "DELETED", name, number });
        }
    }

    /// The objects and their resource versions at a resource version.
    fn state(&self, at: u64) -> BTreeMap<String, u64> {
        let mut state = BTreeMap::new();
        for (version, write) in self.events.range(..=at) {
            if write.deleted {
                state.remove(&write.name);
            } else {
                state.insert(write.name.clone(), *version);
            }
        }
        state
    }
}

/// A page of a list: the resource version of the list, the objects, and the continue token.
fn page(client: &Client, token: &str) -> Result<(u64, BTreeMap<String, u64>, String)> {
    let answer = client.get(&format!("{CONFIG_MAPS}?limit=7&labelSelector=&continue={token}"))?;
    if answer.status != 200 {
        return Err(format!("a page: {}", answer.text()).into());
    }
    let list = answer.json()?;
    let items = list["items"].as_array().ok_or("no items")?.iter();
    let items = items.filter(|item| item["data"].get("number").is_some()).map(read);
    let items = items.map(|(name, _, version)| (name, version)).collect();
    let token = list["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    Ok((version(&list), items, token))
}

#[test]
fn a_server_keeps_its_word_through_kill_9() -> Result {
    let mut server = Server::start(pintle_e2e::config()?)?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "crash"}});
    let created = server.client()?.post("/api/v1/namespaces", &namespace)?;
    assert_eq!(created.status, 201, "{}", created.text());
    let from = version(&created.json()?);
    let known = Arc::new(Mutex::new(Known::default()));
    let mut watches: Vec<Watched> = (0..WATCHES).map(|_| Watched { from, ..Watched::default() }).collect();
    // Lists whose first page is from before a restart, and the rest from after it.
    let mut lists: Vec<(u64, BTreeMap<String, u64>)> = Vec::new();
    let mut random = from;
    for round in 0..kills() {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let client = server.client()?;
        let first_page = thread::scope(|scope| -> Result<_> {
            for writer in 0..WRITERS {
                let (client, known) = (client.clone(), Arc::clone(&known));
                scope.spawn(move || write(&client, writer, &known));
            }
            for watch in &mut watches {
                let client = client.clone();
                scope.spawn(move || watch.follow(&client, None));
            }
            #[expect(clippy::disallowed_methods, reason = "no runtime owns the thread")]
            thread::sleep(Duration::from_millis(20 + (random >> 33) % 120));
            let first_page = page(&client, "");
            server.kill()?;
            first_page
        })?;
        server.restart()?;
        let client = server.client()?;
        check_newest(&client, &known, round)?;
        let (at, mut items, mut token) = first_page;
        while !token.is_empty() {
            let (same, more, next) = page(&client, &token)?;
            assert_eq!(same, at, "a continue token goes on at the revision it was given for");
            items.extend(more);
            token = next;
        }
        lists.push((at, items));
    }

    // A last write, at which every watch ends.
    let client = server.client()?;
    let last = client.post(CONFIG_MAPS, &config_map("the-end", 0, None))?.json()?;
    let last = version(&last);
    thread::scope(|scope| {
        for watch in &mut watches {
            let client = client.clone();
            scope.spawn(move || watch.follow(&client, Some(last)));
        }
    });
    let known = known.lock().unwrap();
    for watch in &watches {
        assert_eq!(watch.last(), last);
        assert!(watch.events == watches[0].events, "two watches were told different things");
    }
    let watch = &watches[0];
    for (version, write) in &known.acknowledged {
        assert_eq!(watch.events.get(version), Some(write), "at {version}");
    }
    for (at, items) in &lists {
        assert_eq!(*items, watch.state(*at), "the list at {at}");
    }
    let (acknowledged, events) = (known.acknowledged.len(), watch.events.len());
    eprintln!(
        "{} kills, {acknowledged} writes answered, {events} events to each of {WATCHES} watches",
        kills()
    );
    assert!(acknowledged as u64 > kills() * 10, "only {acknowledged} writes");
    Ok(())
}

/// Checks that every object has the state of its last acknowledged write, or of its write without a response; the
/// writers continue from there.
fn check_newest(client: &Client, known: &Mutex<Known>, round: u64) -> Result {
    let list = client.get(CONFIG_MAPS)?.json()?;
    let items = list["items"].as_array().ok_or("no items")?.iter();
    let mut items: BTreeMap<String, (u64, u64)> = items
        .filter(|item| item["data"].get("number").is_some())
        .map(read)
        .map(|(name, number, version)| (name, (version, number)))
        .collect();
    let mut known = known.lock().unwrap();
    let newest = known.acknowledged.last_key_value().map_or(0, |(version, _)| *version);
    assert!(version(&list) >= newest, "after kill {round}: the revision went back to {}", version(&list));
    for (name, object) in &mut known.objects {
        let found = items.remove(name);
        if found != object.current {
            let doubtful = object.doubtful.take();
            let Some(write) = doubtful else {
                panic!("after kill {round}: {name} is {found:?}, it was {:?}", object.current)
            };
            let as_doubted = match found {
                None => write.deleted,
                Some((_, number)) => !write.deleted && number == write.number,
            };
            assert!(
                as_doubted,
                "after kill {round}: {name} is {found:?}, not {:?} nor {write:?}",
                object.current
            );
            object.current = found;
        }
        object.doubtful = None;
    }
    assert!(items.is_empty(), "after kill {round}: {items:?} came from nowhere");
    Ok(())
}
