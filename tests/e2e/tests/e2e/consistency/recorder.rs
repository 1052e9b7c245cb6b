//! Watches of everything that a server says of a resource, resumed until the end.

use super::{
    client::Clients,
    history::{Event, History, Kind},
    resource::{Resource, content, name, version},
    watching::{LEFT, OVER, watch},
};
use crate::Result;
use pintle_e2e::PATIENCE;
use pintle_harness::wait_for;
use serde_json::Value;
use std::{collections::BTreeMap, time::Instant};

pub(super) struct Recorder {
    pub(super) server: usize,
    pub(super) resource: Resource,
    pub(super) events: Vec<Event>,
    reached: u64,
}

impl Recorder {
    pub(super) fn new(server: usize, resource: Resource, start: u64) -> Recorder {
        Recorder { server, resource, events: Vec::new(), reached: start }
    }

    /// Follows the resource until its last write.
    pub(super) fn run(&mut self, clients: &Clients, history: &History) {
        while !clients.is_end(self.resource, self.reached) {
            let path = format!(
                "{}?watch=1&allowWatchBookmarks=true&timeoutSeconds=5&resourceVersion={}",
                self.resource.collection(),
                self.reached
            );
            let end = watch(&clients.get(self.server), &path, |event| {
                self.note(event, history);
                !clients.is_end(self.resource, self.reached)
            });
            if end != OVER && end != LEFT {
                clients.wait(self.server);
            }
            // After a restart, watches of custom resources begin with the present state.
            if end.contains("410")
                && let Err(error) = self.fill_gap(clients, history)
            {
                history.violation(format!("{:?} by server {}: {error}", self.resource, self.server));
                return;
            }
        }
    }

    fn note(&mut self, mut event: Event, history: &History) {
        let is_bookmark = event.object.is_null();
        if event.version < self.reached || (event.version == self.reached && !is_bookmark) {
            let (server, reached) = (self.server, self.reached);
            history.violation(format!("server {server} sends {event} after {reached}"));
        }
        history.see_version(event.version);
        self.reached = event.version;
        if !is_bookmark {
            event.object = match event.kind {
                Kind::Deleted => content(event.object),
                _ => history.see(self.resource, event.object),
            };
            self.events.push(event);
        }
    }

    /// Reads the events up to now from the states at each version.
    fn fill_gap(&mut self, clients: &Clients, history: &History) -> Result {
        let mut before = self.state(clients, Some(self.reached))?.1;
        let (newest, _) = self.state(clients, None)?;
        for at in self.reached + 1..=newest {
            let after = self.state(clients, Some(at))?.1;
            let changed = after.iter().filter(|(name, object)| before.get(*name) != Some(object));
            let changed = changed.map(|(name, object)| {
                (if before.contains_key(name) { Kind::Modified } else { Kind::Added }, object.clone())
            });
            let deleted = before.iter().filter(|(name, _)| !after.contains_key(*name));
            let deleted = deleted.map(|(_, object)| {
                let mut object = object.clone();
                object["metadata"]["resourceVersion"] = at.to_string().into();
                (Kind::Deleted, object)
            });
            let changes: Vec<_> = changed.chain(deleted).collect();
            for (kind, object) in changes {
                self.note(Event { kind, version: at, object, seen: Instant::now() }, history);
            }
            before = after;
        }
        self.reached = self.reached.max(newest);
        Ok(())
    }

    /// A state and its version.
    fn state(&self, clients: &Clients, at: Option<u64>) -> Result<(u64, BTreeMap<String, Value>)> {
        let query = at.map(|at| format!("?resourceVersion={at}&resourceVersionMatch=Exact"));
        let path = self.resource.collection() + &query.unwrap_or_default();
        let list = wait_for("a list", PATIENCE, || {
            let answer = clients.get(self.server).get(&path).ok()?;
            (answer.status == 200).then(|| answer.json().ok()).flatten()
        })?;
        let items = list["items"].as_array().ok_or("no items")?.iter();
        let items = items.map(|item| (name(item).to_owned(), content(item.clone()))).collect();
        Ok((version(&list), items))
    }
}
