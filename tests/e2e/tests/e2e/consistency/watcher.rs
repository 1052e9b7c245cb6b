//! Watches that start anywhere, and end soon.

use super::{
    client::Clients,
    form::Form,
    history::{From, History, Kind, Watched},
    random::Random,
    resource::{Resource, Selection},
    watching::{EXPIRED, LEFT, OVER, watch},
};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

pub(super) struct RandomWatcher<'a> {
    random: Random,
    clients: &'a Clients,
    history: &'a History,
}

impl<'a> RandomWatcher<'a> {
    pub(super) fn new(
        number: usize,
        seed: u64,
        clients: &'a Clients,
        history: &'a History,
    ) -> RandomWatcher<'a> {
        RandomWatcher { random: Random::new(seed, number), clients, history }
    }

    pub(super) fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Acquire) {
            let resource = self.random.pick(&Resource::ALL);
            let selection = Selection::random(&mut self.random, resource);
            let past = self.history.past(&mut self.random).max(1);
            let states = [None, Some(0), Some(past)];
            let mut from = match self.random.below(4) {
                0 | 1 => From::After(past),
                2 => From::State(self.random.pick(&states)),
                _ => From::UnmarkedState(self.random.pick(&states[..2])),
            };
            // Some watches continue where the one before has ended, on any server.
            loop {
                match self.watch(resource, selection, from) {
                    Some(next) if self.random.chance(60) && !stop.load(Ordering::Acquire) => from = next,
                    _ => break,
                }
            }
        }
    }

    /// Returns the start of another watch that continues this one.
    fn watch(&mut self, resource: Resource, selection: Selection, from: From) -> Option<From> {
        let server = self.random.below(self.clients.len() as u64) as usize;
        let begun = Instant::now();
        let form = Form::random(&mut self.random);
        let given = |version: Option<u64>| version.map(|version| version.to_string()).unwrap_or_default();
        let start = match from {
            From::After(version) => format!("resourceVersion={version}"),
            From::State(version) => format!(
                "resourceVersion={}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
                given(version)
            ),
            From::UnmarkedState(version) => format!("resourceVersion={}", given(version)),
        };
        // The last bookmark comes two seconds before the end.
        let path = format!(
            "{}?watch=1&allowWatchBookmarks=true&timeoutSeconds=3&{start}{}&{}",
            resource.collection(),
            selection.query(),
            form.query()
        );
        let most = [5, 20, usize::MAX][self.random.below(3) as usize];
        let (mut events, mut last) = (Vec::new(), None);
        if let From::After(version) = from {
            last = Some(version);
        }
        let is_shared = self.random.chance(60);
        let lines = match is_shared {
            true => {
                self.clients.shared(server).and_then(|client| client.lines_as(&form.media_type(""), &path))
            }
            false => self.clients.get(server).lines_as(&form.media_type(""), &path),
        };
        let end = watch(lines, form, |mut event| {
            if !event.object.is_null() {
                event.object = match event.kind {
                    // The object of a selection that it left has the content before and the version after.
                    Kind::Deleted => form.part(event.object),
                    _ => self.history.see(resource, form, event.object),
                };
            }
            self.history.see_version(event.version);
            if last.is_some() || event.kind == (Kind::Bookmark { ends_initial_events: true }) {
                last = Some(event.version);
            }
            events.push(event);
            events.len() < most
        });
        let next = match end.contains(EXPIRED) {
            true => Some(From::State(None)),
            false => last.map(From::After),
        };
        if next != Some(From::State(None)) && end != OVER && end != LEFT {
            self.clients.forget_shared(server);
            self.clients.wait(server);
        }
        self.history.watches.lock().unwrap().push(Watched {
            server,
            resource,
            selection,
            form,
            from,
            begun,
            ended: Instant::now(),
            events,
            end,
        });
        next
    }
}
