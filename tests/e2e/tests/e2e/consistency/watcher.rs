//! Watches that start anywhere, and end soon.

use super::{
    client::Clients,
    history::{From, History, Kind, Watched},
    random::Random,
    resource::{GROUPS, Resource, content},
    watching::{LEFT, OVER, watch},
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
            let group = self.random.chance(50).then(|| self.random.pick(&GROUPS));
            let past = self.history.newest().saturating_sub(self.random.pick(&[0, 1, 20])).max(1);
            let mut from = self.random.pick(&[From::After(past), From::State(None), From::State(Some(past))]);
            // Some watches continue where the one before has ended, on any server.
            loop {
                let last = self.watch(resource, group, from);
                match last {
                    Some(last) if self.random.chance(60) && !stop.load(Ordering::Acquire) => {
                        from = From::After(last);
                    }
                    _ => break,
                }
            }
        }
    }

    /// Returns the version from which another watch continues.
    fn watch(&mut self, resource: Resource, group: Option<&'static str>, from: From) -> Option<u64> {
        let server = self.random.below(self.clients.len() as u64) as usize;
        let begun = Instant::now();
        let selector = group.map(|group| format!("&labelSelector=group%3D{group}")).unwrap_or_default();
        let start = match from {
            From::After(version) => format!("resourceVersion={version}"),
            From::State(version) => format!(
                "resourceVersion={}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
                version.map(|version| version.to_string()).unwrap_or_default()
            ),
        };
        // The last bookmark comes two seconds before the end.
        let path = format!(
            "{}?watch=1&allowWatchBookmarks=true&timeoutSeconds=3&{start}{selector}",
            resource.collection()
        );
        let most = [5, 20, usize::MAX][self.random.below(3) as usize];
        let (mut events, mut last) = (Vec::new(), None);
        if let From::After(version) = from {
            last = Some(version);
        }
        let end = watch(&self.clients.get(server), &path, |mut event| {
            if !event.object.is_null() {
                event.object = match event.kind {
                    // The object of a selection that it left has the content before and the version after.
                    Kind::Deleted => content(event.object),
                    _ => self.history.see(resource, event.object),
                };
            }
            self.history.see_version(event.version);
            if last.is_some() || event.kind == (Kind::Bookmark { ends_initial_events: true }) {
                last = Some(event.version);
            }
            events.push(event);
            events.len() < most
        });
        if end != OVER && end != LEFT {
            self.clients.wait(server);
        }
        self.history.watches.lock().unwrap().push(Watched {
            server,
            resource,
            group,
            from,
            begun,
            events,
            end,
        });
        last
    }
}
