//! API services of what this server serves itself: one for each built-in group and version, and one for each that custom
//! resources are served in.
//!
//! The label `kube-aggregator.kubernetes.io/automanaged` of an API service says whose it is. `onstart`: it is made, or
//! brought back to what it was, when the server starts, and from then on its administrator's. `true`: it is kept as it
//! should be, and goes with the last definition that serves the version. Others are nobody's business here, but for one
//! thing: a local API service is always available.

use crate::{
    api_service::{resource_name, set_available, set_local_condition},
    availability::unavailable,
    priority::{CUSTOM, built_in_priority},
};
use parking_lot::Mutex;
use pintle_apiserver::{
    registry::{Store, Stores},
    serving::stopped,
    work_queue::WorkQueue,
};
use pintle_cacher::{Freshness, WatchItem, WatchOptions, WatchScope, WatchStart};
use pintle_machinery::{GroupVersion, Status, Value, ValueExt, meta::ObjectMeta};
use pintle_registry::{BoxFuture, DeleteOptions, Registry, WriteOptions};
use pintle_supervisor::Supervisor;
use serde_json::json;
use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::watch, task::JoinHandle};

const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
const ON_START: &str = "onstart";
const CONTINUOUSLY: &str = "true";

/// How many API services are worked on at a time: those of a fresh server share their syncs of the disk.
const WORKERS: usize = 16;
/// How many events are taken at once.
const BATCH: usize = 64;
/// How often the services behind API services are looked at.
const SERVICES_INTERVAL: Duration = Duration::from_secs(15);
/// How long the controller waits before it watches again.
const PAUSE: Duration = Duration::from_millis(100);

/// The groups and versions that definitions of custom resources serve.
pub trait CustomGroupVersions: Send + Sync {
    /// Whether a definition serves it.
    fn is_served(&self, group_version: &GroupVersion) -> bool;

    /// Waits until every definition that was there at the start is known.
    fn wait_synced(&self) -> BoxFuture<'_, ()>;

    /// Waits until there are some for which the answer of [`CustomGroupVersions::is_served`] may be another one, and takes
    /// them. Cancelled while it waits, it takes nothing.
    fn changed(&self) -> BoxFuture<'_, Vec<GroupVersion>>;
}

/// The controller that makes, keeps and deletes automatic API services.
pub struct AutoRegistration {
    stores: Arc<Stores>,
    /// Where the services are that API services name.
    services: Arc<Stores>,
    store: Arc<Store>,
    /// The built-in ones, by name.
    built_in: BTreeMap<String, GroupVersion>,
    custom: Arc<dyn CustomGroupVersions>,
    queue: WorkQueue,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The API services that were there when the server started.
    at_start: HashSet<String>,
    /// Those that have been brought into shape once.
    synced: HashSet<String>,
    /// Built-in ones that have not been seen to be available yet.
    pending: HashSet<String>,
}

impl AutoRegistration {
    /// A controller that is not running yet, for the built-in groups and versions that are served. `None` where API
    /// services are switched off.
    pub fn new(
        stores: &Arc<Stores>,
        services: &Arc<Stores>,
        served: impl IntoIterator<Item = GroupVersion>,
        custom: Arc<dyn CustomGroupVersions>,
    ) -> Option<Arc<AutoRegistration>> {
        let store = stores.store(&resource_name()).ok()?;
        let built_in: BTreeMap<String, GroupVersion> = served
            .into_iter()
            .filter(|served| built_in_priority(&served.group, &served.version).is_some())
            .map(|served| (name_of(&served), served))
            .collect();
        let pending = built_in.keys().cloned().collect();
        Some(Arc::new(AutoRegistration {
            stores: stores.clone(),
            services: services.clone(),
            store,
            built_in,
            custom,
            queue: WorkQueue::default(),
            state: Mutex::new(State { pending, ..State::default() }),
        }))
    }

    /// Names of built-in API services that have not been seen to be available yet, sorted; the server is not ready before
    /// there are none.
    pub fn pending(&self) -> Vec<String> {
        let mut pending: Vec<String> = self.state.lock().pending.iter().cloned().collect();
        pending.sort_unstable();
        pending
    }

    /// Starts the controller, which ends when `stopping` turns true.
    pub fn start(
        self: Arc<Self>,
        supervisor: &Supervisor,
        stopping: &watch::Receiver<bool>,
    ) -> JoinHandle<()> {
        let stopping = stopping.clone();
        supervisor.spawn_restarting("poststarthook/kube-apiserver-autoregistration", move || {
            let (registration, mut stopping) = (self.clone(), stopping.clone());
            async move {
                tokio::select! {
                    () = stopped(&mut stopping) => {}
                    () = registration.run() => {}
                }
            }
        })
    }

    async fn run(&self) {
        self.queue.recover();
        // Or API services would be deleted whose definitions are only not known yet.
        self.custom.wait_synced().await;
        self.note_start().await;
        for name in self.built_in.keys() {
            self.queue.add(name.clone());
        }
        let workers = futures_util::future::join_all((0..WORKERS).map(|_| self.work()));
        tokio::join!(self.follow_definitions(), self.follow_api_services(), self.follow_services(), workers);
    }

    async fn note_start(&self) {
        loop {
            match self.stores.list(&resource_name(), "").await {
                Ok(objects) => {
                    self.state.lock().at_start =
                        objects.iter().map(|object| object.name().to_owned()).collect();
                    return;
                }
                Err(status) => {
                    tracing::warn!(error = %status.message, "API services cannot be listed");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn follow_definitions(&self) {
        loop {
            for changed in self.custom.changed().await {
                self.queue.add(name_of(&changed));
            }
        }
    }

    /// Looks at every API service, and at every one that changes.
    async fn follow_api_services(&self) {
        loop {
            let options = WatchOptions {
                start: WatchStart::InitialEvents(Freshness::Any),
                scope: WatchScope::All,
                trigger: None,
                predicate: None,
                has_slow_predicate: false,
                bookmarks: false,
                deadline: None,
            };
            if let Ok(mut watcher) = self.store.cacher().watch(options).await {
                let mut items = Vec::new();
                while watcher.next_batch(BATCH, &mut items).await {
                    for item in items.drain(..) {
                        if let WatchItem::Event { event_type, event } = &item
                            && let Some(object) = event.object(*event_type)
                        {
                            self.queue.add(object.name().to_owned());
                        }
                    }
                }
            }
            // The watch was cut off, or the cache is not usable: everything is looked at again.
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Looks again and again at the API services that have a service, which comes and goes.
    async fn follow_services(&self) {
        loop {
            tokio::time::sleep(SERVICES_INTERVAL).await;
            let objects = self.stores.list(&resource_name(), "").await.unwrap_or_default();
            for object in objects.iter().filter(|object| object.at("spec.service").is_some()) {
                self.queue.add(object.name().to_owned());
            }
        }
    }

    async fn work(&self) {
        loop {
            let name = self.queue.next().await;
            match self.sync(&name).await {
                Ok(()) => self.queue.succeeded(&name),
                Err(status) => {
                    tracing::warn!(%name, error = %status.message, "an API service: trying again");
                    self.queue.failed(&name);
                }
            }
        }
    }

    async fn sync(&self, name: &str) -> Result<(), Status> {
        // What is behind is told of again.
        let current = match self.stores.get_cached(&resource_name(), "", name).await {
            Ok(object) => Some(object),
            Err(status) if status.code == 404 => None,
            Err(status) => return Err(status),
        };
        let action = self.register(name, current.as_ref());
        self.perform(name, current.as_ref(), action).await?;
        self.state.lock().synced.insert(name.to_owned());
        match &current {
            Some(object) => self.keep_available(object).await,
            None => Ok(()),
        }
    }

    /// What an API service should be, and what is to be done about it.
    fn register(&self, name: &str, current: Option<&Value>) -> Action {
        let state = self.state.lock();
        let registration = Registration {
            wanted: self.wanted(name),
            current,
            was_there: state.at_start.contains(name),
            has_synced: state.synced.contains(name),
        };
        registration.action()
    }

    fn wanted(&self, name: &str) -> Option<Wanted> {
        if let Some(group_version) = self.built_in.get(name) {
            let priorities = built_in_priority(&group_version.group, &group_version.version)?;
            return Some(Wanted { spec: spec(group_version, priorities), managed: ON_START });
        }
        let (version, group) = name.split_once('.')?;
        let group_version = GroupVersion::new(group, version);
        self.custom
            .is_served(&group_version)
            .then(|| Wanted { spec: spec(&group_version, CUSTOM), managed: CONTINUOUSLY })
    }

    async fn perform(&self, name: &str, current: Option<&Value>, action: Action) -> Result<(), Status> {
        let resource = resource_name();
        let done = match action {
            Action::None => return Ok(()),
            Action::Create(wanted) => {
                let object = json!({
                    "kind": "APIService",
                    "apiVersion": "apiregistration.k8s.io/v1",
                    "metadata": {"name": name, "labels": {MANAGED: wanted.managed}},
                    "spec": wanted.spec,
                });
                self.stores.create(&resource, "", object, options("")).await.map(drop)
            }
            Action::Delete => {
                let uid = current.map(|object| object.uid().to_owned());
                let options = DeleteOptions { precondition_uid: uid, ..DeleteOptions::default() };
                self.stores.delete(&resource, "", name, options).await.map(drop)
            }
            Action::SetSpec(spec) => {
                let change = Box::new(move |mut object: Value| {
                    object.set("spec", spec.clone());
                    Ok(object)
                });
                self.stores.update(&resource, "", name, change, options("")).await.map(drop)
            }
        };
        match done {
            // It is another one meanwhile, which is going to be told of.
            Err(status) if matches!(status.code, 404 | 409) => Ok(()),
            done => done,
        }
    }

    /// Local API services are always available; whether others are, their services say.
    async fn keep_available(&self, object: &Value) -> Result<(), Status> {
        let name = object.name();
        if let Some(service) = object.at("spec.service") {
            let condition = unavailable(&*self.services, object).await?;
            let set =
                |object: &mut Value| set_available(object, "False", condition.reason, &condition.message);
            if !set(&mut object.clone()) {
                return Ok(());
            }
            let (service, reason, message) = (service.clone(), condition.reason, condition.message.clone());
            let change = Box::new(move |mut object: Value| {
                if object.at("spec.service") == Some(&service) {
                    set_available(&mut object, "False", reason, &message);
                }
                Ok(object)
            });
            return match self.stores.update(&resource_name(), "", name, change, options("status")).await {
                Err(status) if !matches!(status.code, 404 | 409) => Err(status),
                _ => Ok(()),
            };
        }
        if object.at("spec.service").is_none() && set_local_condition(&mut object.clone()) {
            let change = Box::new(|mut object: Value| {
                if object.at("spec.service").is_none() {
                    set_local_condition(&mut object);
                }
                Ok(object)
            });
            match self.stores.update(&resource_name(), "", name, change, options("status")).await {
                Err(status) if !matches!(status.code, 404 | 409) => return Err(status),
                // The change is going to be told of.
                _ => return Ok(()),
            }
        }
        let conditions = object.items_at("status.conditions").iter();
        let is_available = conditions
            .into_iter()
            .any(|condition| condition.str_at("type") == "Available" && condition.str_at("status") == "True");
        if is_available {
            self.state.lock().pending.remove(name);
        }
        Ok(())
    }
}

/// The name of the API service of a group and version.
fn name_of(group_version: &GroupVersion) -> String {
    format!("{}.{}", group_version.version, group_version.group)
}

fn spec(group_version: &GroupVersion, (group_priority, version_priority): (i64, i64)) -> Value {
    let mut spec = json!({
        "version": group_version.version,
        "groupPriorityMinimum": group_priority,
        "versionPriority": version_priority,
    });
    if !group_version.group.is_empty() {
        spec.set("group", group_version.group.clone());
    }
    spec
}

fn options(subresource: &'static str) -> WriteOptions {
    WriteOptions { field_manager: "kube-apiserver".to_owned(), subresource, ..WriteOptions::default() }
}

/// An API service as it should be.
#[derive(Debug, Clone, PartialEq)]
struct Wanted {
    spec: Value,
    managed: &'static str,
}

/// What is known when it is decided what to do about an API service.
struct Registration<'a> {
    wanted: Option<Wanted>,
    current: Option<&'a Value>,
    /// It was there when the server started.
    was_there: bool,
    /// It has been brought into shape since.
    has_synced: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Action {
    None,
    Create(Wanted),
    SetSpec(Value),
    Delete,
}

impl Registration<'_> {
    fn action(self) -> Action {
        let on_start = self.wanted.as_ref().is_some_and(|wanted| wanted.managed == ON_START);
        let Some(current) = self.current else {
            return match self.wanted {
                Some(wanted) if !(on_start && self.has_synced) => Action::Create(wanted),
                Some(_) | None => Action::None,
            };
        };
        let managed = current.label(MANAGED).unwrap_or_default();
        let is_ours = match managed {
            CONTINUOUSLY => true,
            // Once, and only what was there before.
            ON_START => self.was_there && !self.has_synced,
            _ => false,
        };
        if !is_ours || (on_start && self.has_synced) {
            return Action::None;
        }
        match self.wanted {
            None => Action::Delete,
            Some(wanted) if current.at("spec") == Some(&wanted.spec) => Action::None,
            Some(wanted) => Action::SetSpec(wanted.spec),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn current(managed: &str, priority: i64) -> Value {
        let mut object = json!({"metadata": {"name": "v1.a"}, "spec": {"group": "a", "version": "v1",
            "groupPriorityMinimum": priority, "versionPriority": 100}});
        if !managed.is_empty() {
            object.set("metadata.labels", json!({MANAGED: managed}));
        }
        object
    }

    #[test]
    fn an_api_service_is_made_kept_or_left_alone_as_its_label_says() {
        let wanted = |managed| Wanted { spec: spec(&GroupVersion::new("a", "v1"), (1000, 100)), managed };
        let (start, always) = (Some(wanted(ON_START)), Some(wanted(CONTINUOUSLY)));
        let set = || Action::SetSpec(wanted("").spec);
        let create = |wanted: &Option<Wanted>| Action::Create(wanted.clone().unwrap());
        // What is wanted, what is there (label, priority), whether it was at the start, whether it has synced, what to do.
        let rows = [
            (&None, None, false, false, Action::None),
            (&start, None, false, false, create(&start)),
            (&start, None, true, true, Action::None),
            (&always, None, false, true, create(&always)),
            // Whoever took the label off, or never had it.
            (&start, Some(("", 5)), true, false, Action::None),
            (&always, Some(("", 5)), true, false, Action::None),
            (&None, Some(("", 5)), true, false, Action::None),
            // What somebody else made with our label since the start.
            (&start, Some((ON_START, 5)), false, false, Action::None),
            (&None, Some((ON_START, 5)), false, false, Action::None),
            // What an older server left.
            (&None, Some((ON_START, 5)), true, false, Action::Delete),
            (&None, Some((ON_START, 5)), true, true, Action::None),
            (&start, Some((ON_START, 5)), true, false, set()),
            (&start, Some((ON_START, 1000)), true, false, Action::None),
            (&start, Some((ON_START, 5)), true, true, Action::None),
            (&start, Some((CONTINUOUSLY, 5)), true, true, Action::None),
            (&start, Some((CONTINUOUSLY, 5)), true, false, set()),
            // Those of definitions.
            (&always, Some((CONTINUOUSLY, 5)), false, true, set()),
            (&always, Some((CONTINUOUSLY, 1000)), false, true, Action::None),
            (&None, Some((CONTINUOUSLY, 1000)), false, true, Action::Delete),
        ];
        for (index, (wanted, now, was_there, has_synced, expected)) in rows.into_iter().enumerate() {
            let now = now.map(|(managed, priority)| current(managed, priority));
            let registration =
                Registration { wanted: wanted.clone(), current: now.as_ref(), was_there, has_synced };
            assert_eq!(registration.action(), expected, "row {index}");
        }
    }

    #[test]
    fn names_are_versions_in_groups() {
        assert_eq!(name_of(&GroupVersion::new("", "v1")), "v1.");
        assert_eq!(name_of(&GroupVersion::new("apps", "v1")), "v1.apps");
        let core = spec(&GroupVersion::new("", "v1"), (18000, 1));
        assert_eq!(core, json!({"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1}));
    }
}
