//! Registers API services for the groups and versions that this server serves itself: one for each built-in group and
//! version, and one for each group and version of custom resources.
//!
//! The label `kube-aggregator.kubernetes.io/automanaged` of an API service states its owner. With `onstart`, the
//! controller creates or resets the API service when the server starts; afterwards an administrator may change it. With
//! `true`, the controller reconciles it permanently, and deletes it with the last definition that serves the version.
//! Other API services are left alone, except that the controller sets their `Available` condition.

use crate::{
    api_service::resource_name,
    api_services::name_of,
    availability,
    condition::{Availability, is_available},
    priority::{CUSTOM, built_in_priority},
};
use parking_lot::Mutex;
use pintle_apiserver::{
    post_start_hooks::HookContext,
    registry::{Store, Stores},
    serving::stopped,
};
use pintle_controller::{Delta, Informer, Reconciler, WorkQueue, WorkQueueMetrics};
use pintle_machinery::{GroupVersion, Status, Value, ValueExt, json, meta::ObjectMeta};
use pintle_registry::{BoxFuture, DeleteOptions, Preconditions, Registry, WriteOptions};
use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};
use tokio::sync::watch;

const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
const ON_START: &str = "onstart";
const CONTINUOUSLY: &str = "true";

/// The number of concurrent workers. Writes of a fresh server share a group commit.
const WORKERS: usize = 16;
/// The pause before API services are listed again after a failure.
const PAUSE: Duration = Duration::from_millis(100);

/// The groups and versions of custom resources.
pub trait CustomGroupVersions: Send + Sync {
    /// Whether a definition serves the group and version.
    fn is_served(&self, group_version: &GroupVersion) -> bool;

    /// Waits until the informer has synced.
    fn wait_synced(&self) -> BoxFuture<'_, ()>;

    /// Checks that each stored definition is known: that a version which [`CustomGroupVersions::is_served`] lacks has no
    /// definition.
    ///
    /// # Errors
    /// When a definition cannot be read, or was not processed yet.
    fn require_known(&self) -> BoxFuture<'_, Result<(), Status>>;

    /// Waits for groups and versions whose result of [`CustomGroupVersions::is_served`] may have changed, and takes
    /// them. Cancel safe: a cancelled call takes nothing.
    fn changed(&self) -> BoxFuture<'_, Vec<GroupVersion>>;
}

/// The controller that creates, reconciles and deletes automatic API services.
pub struct AutoRegistration {
    stores: Arc<Stores>,
    store: Arc<Store>,
    /// The built-in groups and versions, by API service name.
    built_in: BTreeMap<String, GroupVersion>,
    custom: Arc<dyn CustomGroupVersions>,
    queue: WorkQueue,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The API services that existed when the server started.
    at_start: HashSet<String>,
    /// The API services that were reconciled at least once.
    synced: HashSet<String>,
    /// The built-in API services that were not observed as available yet.
    pending: HashSet<String>,
}

impl AutoRegistration {
    /// Creates the controller, not yet running, for the served built-in groups and versions. `None` when the API
    /// service resource is disabled.
    pub fn new(
        stores: &Arc<Stores>,
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
            store,
            built_in,
            custom,
            queue: WorkQueue::default(),
            state: Mutex::new(State { pending, ..State::default() }),
        }))
    }

    /// Measures the work queue.
    pub fn measure(&self, metrics: &WorkQueueMetrics) {
        metrics.measure("autoregister", &self.queue);
    }

    /// The names of built-in API services that were not observed as available yet, sorted. The server becomes ready
    /// when the list is empty.
    pub fn pending(&self) -> Vec<String> {
        let mut pending: Vec<String> = self.state.lock().pending.iter().cloned().collect();
        pending.sort_unstable();
        pending
    }

    /// Starts the controller.
    pub fn start(self: Arc<Self>, hook: &HookContext) {
        let stopping = hook.stopping().clone();
        hook.spawn_restarting(move || {
            let (registration, mut stopping) = (self.clone(), stopping.clone());
            async move {
                let informed = stopping.clone();
                tokio::select! {
                    () = stopped(&mut stopping) => {}
                    () = registration.run(informed) => {}
                }
            }
        });
    }

    async fn run(&self, stopping: watch::Receiver<bool>) {
        // Otherwise API services would be deleted whose definitions are not known yet.
        self.custom.wait_synced().await;
        self.note_start().await;
        for name in self.built_in.keys() {
            self.queue.add(name.clone());
        }
        tokio::join!(self.follow_definitions(), self.follow_api_services(stopping), self.queue.process(self));
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

    /// Processes every API service, and then every change.
    async fn follow_api_services(&self, stopping: watch::Receiver<bool>) {
        let informer = Informer::new(self.store.cacher());
        let queueing = informer.run(stopping, |deltas| {
            deltas.for_each(|delta| match delta {
                Delta::Set(object) | Delta::Removed(object) => self.queue.add(object.name().to_owned()),
                Delta::Listed(_) => {}
            });
        });
        queueing.await;
    }

    async fn sync(&self, name: &str) -> Result<(), Status> {
        // A stale cached state causes another event later.
        let current = match self.stores.get_cached(&resource_name(), "", name).await {
            Ok(object) => Some(object),
            Err(status) if status.code == 404 => None,
            Err(status) => return Err(status),
        };
        let action = self.register(name, current.as_ref());
        if action == Action::Delete {
            // The definition of this version may be one that cannot be read.
            self.custom.require_known().await?;
        }
        self.perform(name, current.as_ref(), action).await?;
        self.state.lock().synced.insert(name.to_owned());
        match &current {
            Some(object) => self.keep_available(object).await,
            None => Ok(()),
        }
    }

    /// The desired state of an API service, and the action towards it.
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
                let options = DeleteOptions {
                    preconditions: Preconditions { uid, resource_version: None },
                    ..DeleteOptions::default()
                };
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
            // The object has changed meanwhile; its event follows.
            Err(status) if matches!(status.code, 404 | 409) => Ok(()),
            done => done,
        }
    }

    /// Sets the `Available` condition of an API service that this server serves itself.
    async fn keep_available(&self, object: &Value) -> Result<(), Status> {
        if object.at("spec.service").is_none()
            && availability::write(&self.stores, object, &Availability::local()).await?
        {
            // The event of the change follows.
            return Ok(());
        }
        if is_available(object) {
            self.state.lock().pending.remove(object.name());
        }
        Ok(())
    }
}

impl Reconciler for AutoRegistration {
    type Error = Status;

    fn workers(&self) -> usize {
        WORKERS
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.sync(name))
    }

    fn log_failure(&self, name: &str, status: &Status) {
        tracing::warn!(%name, error = %status.message, "an API service: trying again");
    }
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

/// The desired state of an API service.
#[derive(Debug, Clone, PartialEq)]
struct Wanted {
    spec: Value,
    managed: &'static str,
}

/// The inputs of the decision on an API service.
struct Registration<'a> {
    wanted: Option<Wanted>,
    current: Option<&'a Value>,
    /// Whether it existed when the server started.
    was_there: bool,
    /// Whether it was reconciled since.
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
            // Only once, and only if it existed before.
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
    use pintle_apiserver::registry::{Engine, StorageFactory};
    use pintle_storage::MemoryStorage;
    use pintle_supervisor::Supervisor;
    use std::{
        future::{pending, ready},
        sync::atomic::{AtomicBool, Ordering},
    };

    fn current(managed: &str, priority: i64) -> Value {
        let mut object = json!({"metadata": {"name": "v1.a"}, "spec": {"group": "a", "version": "v1",
            "groupPriorityMinimum": priority, "versionPriority": 100}});
        if !managed.is_empty() {
            object.set("metadata.labels", json!({MANAGED: managed}));
        }
        object
    }

    #[test]
    fn the_label_decides_whether_an_api_service_is_reconciled() {
        let wanted = |managed| Wanted { spec: spec(&GroupVersion::new("a", "v1"), (1000, 100)), managed };
        let (start, always) = (Some(wanted(ON_START)), Some(wanted(CONTINUOUSLY)));
        let set = || Action::SetSpec(wanted("").spec);
        let create = |wanted: &Option<Wanted>| Action::Create(wanted.clone().unwrap());
        // The desired state, the current one (label, priority), whether it existed at the start, whether it was
        // reconciled, the action.
        let rows = [
            (&None, None, false, false, Action::None),
            (&start, None, false, false, create(&start)),
            (&start, None, true, true, Action::None),
            (&always, None, false, true, create(&always)),
            // The label was removed or never set.
            (&start, Some(("", 5)), true, false, Action::None),
            (&always, Some(("", 5)), true, false, Action::None),
            (&None, Some(("", 5)), true, false, Action::None),
            // Created with our label by a client since the start.
            (&start, Some((ON_START, 5)), false, false, Action::None),
            (&None, Some((ON_START, 5)), false, false, Action::None),
            // Left by an older server.
            (&None, Some((ON_START, 5)), true, false, Action::Delete),
            (&None, Some((ON_START, 5)), true, true, Action::None),
            (&start, Some((ON_START, 5)), true, false, set()),
            (&start, Some((ON_START, 1000)), true, false, Action::None),
            (&start, Some((ON_START, 5)), true, true, Action::None),
            (&start, Some((CONTINUOUSLY, 5)), true, true, Action::None),
            (&start, Some((CONTINUOUSLY, 5)), true, false, set()),
            // For groups and versions of definitions.
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

    /// Groups and versions of definitions that a test sets, and whether one definition is unreadable.
    #[derive(Default)]
    struct Definitions(Mutex<HashSet<GroupVersion>>, AtomicBool);

    impl CustomGroupVersions for Definitions {
        fn is_served(&self, group_version: &GroupVersion) -> bool {
            self.0.lock().contains(group_version)
        }

        fn wait_synced(&self) -> BoxFuture<'_, ()> {
            Box::pin(ready(()))
        }

        fn require_known(&self) -> BoxFuture<'_, Result<(), Status>> {
            Box::pin(ready(match self.1.load(Ordering::Relaxed) {
                true => Err(Status::internal_error("unreadable")),
                false => Ok(()),
            }))
        }

        fn changed(&self) -> BoxFuture<'_, Vec<GroupVersion>> {
            Box::pin(pending())
        }
    }

    /// A controller of the group `apps`, on the memory engine.
    struct Fixture {
        stores: Arc<Stores>,
        definitions: Arc<Definitions>,
        registration: Arc<AutoRegistration>,
    }

    impl Fixture {
        async fn start() -> Fixture {
            let engine = Engine { storage: Arc::new(MemoryStorage::new()), exclusive: true };
            let storage = Arc::new(StorageFactory::new(engine, "/registry"));
            let stores =
                Stores::start(crate::resources(), Vec::new(), &storage, &Supervisor::current()).unwrap();
            stores.wait_ready().await.unwrap();
            let definitions = Arc::new(Definitions::default());
            let served = [GroupVersion::new("apps", "v1"), GroupVersion::new("unknown.group", "v1")];
            let registration = AutoRegistration::new(&stores, served, definitions.clone()).unwrap();
            registration.note_start().await;
            Fixture { stores, definitions, registration }
        }

        /// The API service of this name; the cache is then as new as the store.
        async fn get(&self, name: &str) -> Option<Value> {
            self.stores.get(&resource_name(), "", name).await.ok()
        }

        /// Reconciles an API service.
        async fn sync(&self, name: &str) {
            drop(self.get(name).await);
            self.registration.sync(name).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_built_in_api_service_is_pending_until_it_was_seen_as_available() {
        let fixture = Fixture::start().await;
        assert_eq!(fixture.registration.pending(), ["v1.apps"]);
        fixture.sync("v1.apps").await;
        assert_eq!(fixture.registration.pending(), ["v1.apps"], "created, and not read yet");
        let object = fixture.get("v1.apps").await.unwrap();
        assert_eq!(object.label(MANAGED), Some(ON_START));
        assert_eq!(object["spec"]["groupPriorityMinimum"], 17800);
        fixture.sync("v1.apps").await;
        assert!(fixture.registration.pending().is_empty());
        // An administrator may delete it until the next start.
        fixture.stores.delete(&resource_name(), "", "v1.apps", DeleteOptions::default()).await.unwrap();
        fixture.sync("v1.apps").await;
        assert_eq!(fixture.get("v1.apps").await, None);
    }

    #[tokio::test]
    async fn the_api_service_of_a_definition_follows_it() {
        let fixture = Fixture::start().await;
        fixture.sync("v1.example.com").await;
        assert_eq!(fixture.get("v1.example.com").await, None);
        fixture.definitions.0.lock().insert(GroupVersion::new("example.com", "v1"));
        fixture.sync("v1.example.com").await;
        let created = fixture.get("v1.example.com").await.unwrap();
        assert_eq!(
            (created.label(MANAGED), &created["spec"]["versionPriority"]),
            (Some("true"), &json!(100))
        );
        let change = Box::new(|mut object: Value| {
            object.set("spec.versionPriority", 5);
            Ok(object)
        });
        fixture.stores.update(&resource_name(), "", "v1.example.com", change, options("")).await.unwrap();
        fixture.sync("v1.example.com").await;
        let object = fixture.get("v1.example.com").await.unwrap();
        assert_eq!(object["spec"], created["spec"], "the priority is reset");
        fixture.definitions.0.lock().clear();
        fixture.definitions.1.store(true, Ordering::Relaxed);
        let refused = fixture.registration.sync("v1.example.com").await.unwrap_err();
        assert_eq!(refused.message, "Internal error occurred: unreadable");
        assert_eq!(
            fixture.get("v1.example.com").await,
            Some(object),
            "its definition may be the unreadable one"
        );
        fixture.definitions.1.store(false, Ordering::Relaxed);
        fixture.sync("v1.example.com").await;
        assert_eq!(fixture.get("v1.example.com").await, None);
    }
}
