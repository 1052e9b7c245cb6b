//! Watches of everything that a server says of a resource, resumed until the end.

use super::{
    client::Clients,
    form::Form,
    history::{Event, History, Kind},
    resource::{Resource, content, name, version},
    watching::{EXPIRED, LEFT, OVER, watch},
};
use crate::Result;
use pintle_e2e::PATIENCE;
use pintle_harness::wait_for;
use serde_json::Value;
use std::{collections::BTreeMap, sync::atomic::Ordering, time::Instant};

pub(super) struct Recorder {
    pub(super) server: usize,
    pub(super) resource: Resource,
    pub(super) events: Vec<Event>,
    reached: u64,
    /// The objects after these events.
    state: BTreeMap<String, Value>,
}

impl Recorder {
    pub(super) fn new(server: usize, resource: Resource, start: u64) -> Recorder {
        Recorder { server, resource, events: Vec::new(), reached: start, state: BTreeMap::new() }
    }

    /// Follows the resource until its last write.
    pub(super) fn run(&mut self, clients: &Clients, history: &History) {
        while !clients.is_end(self.resource, self.reached) {
            let path = format!(
                "{}?watch=1&allowWatchBookmarks=true&timeoutSeconds=5&resourceVersion={}",
                self.resource.collection(),
                self.reached
            );
            let lines = clients.get(self.server).lines(&path);
            let end = watch(lines, Form::PLAIN, |event| {
                self.note(event, clients, history);
                !clients.is_end(self.resource, self.reached)
            });
            if end != OVER && end != LEFT {
                clients.wait(self.server);
            }
            // After a restart, watches of custom resources begin with the present state.
            if end.contains(EXPIRED)
                && let Err(error) = self.fill_gap(clients, history)
            {
                history.violation(format!("{:?} by server {}: {error}", self.resource, self.server));
                return;
            }
        }
    }

    fn note(&mut self, mut event: Event, clients: &Clients, history: &History) {
        let is_bookmark = event.object.is_null();
        if event.version < self.reached || (event.version == self.reached && !is_bookmark) {
            let (server, reached) = (self.server, self.reached);
            history.violation(format!("server {server} sends {event} after {reached}"));
        }
        history.see_version(event.version);
        self.reached = event.version;
        clients.reach(self.server, self.resource, event.version);
        if !is_bookmark {
            event.object = match event.kind {
                Kind::Deleted => content(event.object),
                _ => history.see(self.resource, Form::PLAIN, event.object),
            };
            match event.kind {
                Kind::Deleted => self.state.remove(name(&event.object)),
                _ => self.state.insert(name(&event.object).to_owned(), event.object.clone()),
            };
            self.events.push(event);
        }
    }

    /// Reads the events up to now from the states at each version. If changes were compacted
    /// before, the history is not known.
    fn fill_gap(&mut self, clients: &Clients, history: &History) -> Result {
        let newest = self.list(clients, "")?.ok_or("the newest state is too old")?.0;
        let mut is_late = false;
        for at in self.reached + 1..=newest {
            let exact = format!("?resourceVersion={at}&resourceVersionMatch=Exact");
            let Some((_, after)) = self.list(clients, &exact)? else {
                is_late = true;
                continue;
            };
            if std::mem::take(&mut is_late) && after != self.state {
                history.late.store(true, Ordering::Release);
            }
            let changed = after.iter().filter(|(name, object)| self.state.get(*name) != Some(object));
            let changed = changed.map(|(name, object)| {
                let kind = if self.state.contains_key(name) { Kind::Modified } else { Kind::Added };
                (version(object), kind, object.clone())
            });
            let deleted = self.state.iter().filter(|(name, _)| !after.contains_key(*name));
            let deleted = deleted.map(|(_, object)| {
                let mut object = object.clone();
                object["metadata"]["resourceVersion"] = at.to_string().into();
                (at, Kind::Deleted, object)
            });
            let mut changes: Vec<_> = changed.chain(deleted).collect();
            changes.sort_by_key(|(version, ..)| *version);
            for (version, kind, object) in changes {
                self.note(Event { kind, version, object, seen: Instant::now() }, clients, history);
            }
        }
        self.reached = self.reached.max(newest);
        clients.reach(self.server, self.resource, self.reached);
        Ok(())
    }

    /// A state and its version; `None` when it was compacted.
    fn list(&self, clients: &Clients, query: &str) -> Result<Option<(u64, BTreeMap<String, Value>)>> {
        let path = self.resource.collection() + query;
        let response = wait_for("a list", PATIENCE, || {
            let response = clients.get(self.server).get(&path).ok()?;
            matches!(response.status, 200 | 410).then_some(response)
        })?;
        if response.status == 410 {
            return Ok(None);
        }
        let list = response.json()?;
        let items = list["items"].as_array().ok_or("no items")?.iter();
        let items = items.map(|item| (name(item).to_owned(), content(item.clone()))).collect();
        Ok(Some((version(&list), items)))
    }
}
