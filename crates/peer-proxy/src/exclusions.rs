//! The groups and versions that are never forwarded: those of custom resources and of extension servers, which every server
//! of the cluster serves from the same objects.
//!
//! A peer's discovery lists them too, as they were when it was asked. A group and version whose definition or API service is
//! deleted stays excluded for a while, until the other servers have noticed the deletion, too.

use parking_lot::Mutex;
use pintle_cacher::{CachedObject, Cacher};
use pintle_controller::{Delta, Deltas, Informer};
use pintle_machinery::GroupVersion;
use serde::Deserialize;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::watch, time::Instant};

/// How long a group and version stays excluded after it is gone.
const GRACE_PERIOD: Duration = Duration::from_secs(300);

/// The excluded groups and versions.
#[derive(Debug, Default)]
pub(crate) struct Exclusions {
    state: Mutex<State>,
    changes: watch::Sender<u64>,
    synced: watch::Sender<Synced>,
}

#[derive(Debug, Default)]
struct State {
    /// The groups and versions of each object.
    objects: HashMap<(Source, String), Vec<GroupVersion>>,
    /// The number of objects that have a group and version.
    counts: HashMap<GroupVersion, usize>,
    /// The groups and versions that no object has any more, and when that began.
    gone: HashMap<GroupVersion, Instant>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Synced {
    definitions: bool,
    api_services: bool,
}

/// The kind of object that a group and version belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    Definition,
    ApiService,
}

#[derive(Deserialize)]
struct Definition {
    spec: DefinitionSpec,
}

#[derive(Deserialize)]
struct DefinitionSpec {
    group: String,
    versions: Vec<DefinedVersion>,
}

#[derive(Deserialize)]
struct DefinedVersion {
    name: String,
}

#[derive(Deserialize)]
struct ApiService {
    spec: ApiServiceSpec,
}

#[derive(Deserialize)]
struct ApiServiceSpec {
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    service: Option<serde::de::IgnoredAny>,
}

impl Source {
    /// The groups and versions of an object. A version of a definition counts whether or not it is served; an API service
    /// counts if another server is behind it.
    fn group_versions(self, object: &CachedObject) -> Vec<GroupVersion> {
        match self {
            Source::Definition => {
                let definition = serde_json::from_slice::<Definition>(&object.json()).ok();
                let spec = definition.map(|definition| definition.spec);
                spec.into_iter()
                    .flat_map(|spec| {
                        let group = spec.group;
                        spec.versions.into_iter().map(move |version| GroupVersion::new(&*group, version.name))
                    })
                    .collect()
            }
            Source::ApiService => {
                let service = serde_json::from_slice::<ApiService>(&object.json()).ok();
                let spec = service.map(|service| service.spec).filter(|spec| spec.service.is_some());
                spec.into_iter().map(|spec| GroupVersion::new(spec.group, spec.version)).collect()
            }
        }
    }
}

impl Exclusions {
    /// The excluded groups and versions, and when that changes by itself, if it does.
    pub(crate) fn current(&self, now: Instant) -> (HashSet<GroupVersion>, Option<Instant>) {
        let mut state = self.state.lock();
        state.gone.retain(|_, since| now.duration_since(*since) < GRACE_PERIOD);
        let next = state.gone.values().min().map(|since| *since + GRACE_PERIOD);
        (state.counts.keys().chain(state.gone.keys()).cloned().collect(), next)
    }

    /// Changes with each change of the excluded groups and versions that an object causes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Waits until all objects that existed at the start are known.
    pub(crate) async fn wait_synced(&self) {
        // The sender lives as long as this.
        drop(self.synced.subscribe().wait_for(|synced| synced.definitions && synced.api_services).await);
    }

    /// Follows the watch caches of definitions and API services until `stopping` becomes true. Of a resource that is
    /// disabled there are no objects.
    pub(crate) async fn run(
        &self,
        definitions: Option<&Arc<Cacher>>,
        api_services: Option<&Arc<Cacher>>,
        stopping: watch::Receiver<bool>,
    ) {
        tokio::join!(
            self.run_one(Source::Definition, definitions, stopping.clone()),
            self.run_one(Source::ApiService, api_services, stopping),
        );
    }

    async fn run_one(&self, source: Source, cacher: Option<&Arc<Cacher>>, stopping: watch::Receiver<bool>) {
        let Some(cacher) = cacher else { return self.set_synced(source) };
        let follow = |deltas: Deltas<'_>| {
            deltas.for_each(|delta| match delta {
                Delta::Set(object) => self.set(source, object.name(), source.group_versions(object)),
                Delta::Removed(object) => self.set(source, object.name(), Vec::new()),
                Delta::Listed(names) => {
                    let is_gone = |name: &str| !names.contains("", name);
                    let objects = self.state.lock().names(source);
                    objects
                        .iter()
                        .filter(|name| is_gone(name))
                        .for_each(|name| self.set(source, name, Vec::new()));
                    self.set_synced(source);
                }
            });
        };
        Informer::new(cacher).run(stopping, follow).await;
    }

    fn set_synced(&self, source: Source) {
        self.synced.send_modify(|synced| match source {
            Source::Definition => synced.definitions = true,
            Source::ApiService => synced.api_services = true,
        });
    }

    fn set(&self, source: Source, name: &str, group_versions: Vec<GroupVersion>) {
        if self.state.lock().set(source, name, group_versions, Instant::now()) {
            self.changes.send_modify(|changes| *changes += 1);
        }
    }
}

impl State {
    fn names(&self, source: Source) -> Vec<String> {
        self.objects.keys().filter(|(own, _)| *own == source).map(|(_, name)| name.clone()).collect()
    }

    /// Sets the groups and versions of an object; returns whether that is a change.
    fn set(&mut self, source: Source, name: &str, group_versions: Vec<GroupVersion>, now: Instant) -> bool {
        let key = (source, name.to_owned());
        let before = match group_versions.is_empty() {
            true => self.objects.remove(&key),
            false => self.objects.insert(key, group_versions.clone()),
        };
        let before = before.unwrap_or_default();
        if before == group_versions {
            return false;
        }
        for group_version in group_versions {
            self.gone.remove(&group_version);
            *self.counts.entry(group_version).or_default() += 1;
        }
        for group_version in before {
            let Some(count) = self.counts.get_mut(&group_version) else { continue };
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&group_version);
                self.gone.insert(group_version, now);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_gone_stays_excluded_for_a_while() {
        let exclusions = Exclusions::default();
        let versions = |text: &str| -> Vec<GroupVersion> {
            let version = |text: &str| {
                let (group, version) = text.split_once('/').unwrap();
                GroupVersion::new(group, version)
            };
            text.split_whitespace().map(version).collect()
        };
        let set = |source, name: &str, text: &str| exclusions.set(source, name, versions(text));
        let check = |expected: &str| {
            let (excluded, _) = exclusions.current(Instant::now());
            let mut excluded: Vec<String> = excluded.iter().map(ToString::to_string).collect();
            excluded.sort();
            assert_eq!(excluded.join(" "), expected);
        };
        check("");
        set(Source::Definition, "things.a", "a/v1 a/v2");
        set(Source::Definition, "others.a", "a/v1");
        set(Source::ApiService, "v1.b", "b/v1");
        check("a/v1 a/v2 b/v1");
        assert_eq!(exclusions.current(Instant::now()).1, None);
        let changes = *exclusions.changes().borrow();
        set(Source::ApiService, "v1.b", "b/v1");
        set(Source::ApiService, "v1.c", "");
        assert_eq!(*exclusions.changes().borrow(), changes, "nothing has changed");

        // Another definition has the version still.
        set(Source::Definition, "things.a", "a/v2");
        assert_eq!(exclusions.current(Instant::now()).1, None);
        set(Source::Definition, "things.a", "");
        set(Source::Definition, "others.a", "");
        let (_, next) = exclusions.current(Instant::now());
        assert_eq!(next, Some(Instant::now() + GRACE_PERIOD));
        check("a/v1 a/v2 b/v1");
        tokio::time::advance(GRACE_PERIOD / 2).await;
        // It comes back before the others have noticed.
        set(Source::Definition, "things.a", "a/v2");
        tokio::time::advance(GRACE_PERIOD / 2).await;
        check("a/v2 b/v1");
        assert_eq!(exclusions.current(Instant::now()).1, None);
    }
}
