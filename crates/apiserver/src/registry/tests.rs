//! Writes through a store, on the memory engine.

use super::*;
use crate::base::warning::Warnings;
use jiff::Timestamp;
use parking_lot::Mutex;
use pintle_admission::Lister;
use pintle_auth::authz::AlwaysAllow;
use pintle_cacher::{Freshness, Selectable, testing::TestStorage};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, GroupResource, GroupVersion, Status, StatusReason, UserInfo, Value,
    ValueExt, json, meta::ObjectMeta, selectors::LabelSelector,
};
use pintle_registry::{
    BoxFuture, DefaultStrategy, DeleteOptions, EmptyFields, FirstPropagation, GarbageCollectionPolicy,
    PatientClient, Preconditions, PropagationPolicy, Registry, RequestContext, Resource, Scope, Strategy,
    WriteOptions, testing::GoneClient,
};
use pintle_storage::{MemoryStorage, Revision, StorageEvent, WatchRequest};
use pintle_supervisor::Supervisor;
use std::sync::Arc;

/// A store of config maps.
struct Fixture {
    stores: Arc<Stores>,
    store: Arc<Store>,
    user: UserInfo,
    version: GroupVersion,
    empty_fields: EmptyFields,
}

impl Fixture {
    fn start(media_type: StorageMediaType) -> Fixture {
        Fixture::of(config_maps(), media_type)
    }

    fn of(resource: Resource, media_type: StorageMediaType) -> Fixture {
        Fixture::on(MemoryStorage::new(), resource, media_type)
    }

    fn on(storage: MemoryStorage, resource: Resource, media_type: StorageMediaType) -> Fixture {
        Fixture::on_engine(Engine { storage: Arc::new(storage), exclusive: true }, resource, media_type)
    }

    fn on_engine(engine: Engine, resource: Resource, media_type: StorageMediaType) -> Fixture {
        let group_resource = resource.group_resource();
        let version = resource.resource.group_version();
        let storage = Arc::new(StorageFactory::new(engine, "/registry").media_type(Some(media_type)));
        let stores =
            Stores::start(vec![resource], Vec::new(), &storage, &Supervisor::current()).expect("a type");
        let store = stores.store(&group_resource).expect("a store");
        Fixture { stores, store, user: UserInfo::default(), version, empty_fields: EmptyFields::default() }
    }

    fn context<'a>(&'a self, name: &'a str, dry_run: bool) -> RequestContext<'a> {
        RequestContext {
            user: &self.user,
            verb: "update",
            namespace: "n",
            name,
            subresource: "",
            group_version: &self.version,
            now: Timestamp::now(),
            dry_run,
            empty_fields: &self.empty_fields,
            registry: &*self.stores,
            authorizer: &AlwaysAllow,
            client: &PatientClient,
        }
    }

    async fn create(&self, object: Value, dry_run: bool) -> Result<Value, Status> {
        let context = self.context("", dry_run);
        let written = self.store.create(&context, object, &AcceptAll, &Warnings::default()).await?;
        Ok(written.object)
    }

    async fn update(
        &self,
        name: &str,
        preconditions: &Preconditions,
        upsert: Upsert,
        dry_run: bool,
        transform: &mut dyn Transform,
    ) -> Result<Updated, Status> {
        let (context, warnings) = (self.context(name, dry_run), Warnings::default());
        self.store.update(&context, &DefaultStrategy, preconditions, upsert, transform, &warnings).await
    }

    /// Sets one key of the data.
    async fn set(&self, name: &str, key: &str) -> Result<Value, Status> {
        let transform = &mut Set { key: key.to_owned(), version: None };
        let updated = self.update(name, &Preconditions::default(), Upsert::Never, false, transform).await?;
        Ok(updated.written.object)
    }

    async fn delete(&self, name: &str, options: DeleteOptions) -> Result<Deleted, Status> {
        let context = self.context(name, options.dry_run);
        self.store.delete(&context, &options, &AcceptAll).await
    }

    /// The keys of the stored object's data; `None` when there is no object.
    async fn keys(&self, name: &str) -> Option<Vec<String>> {
        let key = self.store.key("n", name);
        let found = self.store.find(&key, Freshness::Consistent).await.expect("a read")?;
        Some(keys(&serde_json::from_slice(&found.json()).expect("JSON")))
    }
}

fn keys(object: &Value) -> Vec<String> {
    object.map_at("data").keys().map(ToString::to_string).collect()
}

fn config_maps() -> Resource {
    let type_name = "k8s.io/api/core/v1.ConfigMap";
    Resource::new("", "v1", "configmaps", "configmap", "ConfigMap", Scope::Namespaced, type_name)
}

fn config_map(name: &str) -> Value {
    json!({
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "n", "labels": {"app": "web"}}, "data": {"a": "1"}
    })
}

/// Sets a key of the data and, if given, the resourceVersion.
struct Set {
    key: String,
    version: Option<String>,
}

impl Transform for Set {
    fn apply<'a>(&'a mut self, old: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        let mut new = old.cloned().unwrap_or_else(|| config_map("made"));
        new.set(&format!("data.{}", self.key), "1");
        if let Some(version) = &self.version {
            new.set("metadata.resourceVersion", version.as_str());
        }
        Box::pin(std::future::ready(Ok(new)))
    }
}

#[tokio::test]
async fn the_server_applies_by_its_own_manager_and_takes_fields() {
    let fixture = Fixture::start(StorageMediaType::Json);
    fixture.create(config_map("a"), false).await.expect("a config map");
    let resource = GroupResource::new("", "configmaps");
    let apply = async |name: &str, value: &str| {
        let options = WriteOptions { field_manager: "consumer".to_owned(), ..WriteOptions::default() };
        let config = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"a": value}});
        fixture.stores.apply(&resource, "n", name, config, options).await
    };
    let applied = apply("a", "2").await.expect("an apply");
    assert_eq!(applied["data"], json!({"a": "2"}));
    let manager = &applied["metadata"]["managedFields"][0];
    assert_eq!((&manager["manager"], &manager["operation"]), (&json!("consumer"), &json!("Apply")));
    assert_eq!(apply("b", "2").await.unwrap_err().code, 404);
}

#[tokio::test]
async fn writes_by_a_server_beside_this_one_have_managers() {
    let fixture = Fixture::start(StorageMediaType::Json);
    let beside = Some(fixture.stores.clone());
    let engine = Engine { storage: Arc::new(MemoryStorage::new()), exclusive: true };
    let storage = Arc::new(StorageFactory::new(engine, "/registry"));
    let supervisor = Supervisor::current();
    let extensions =
        Stores::start_beside(beside, Vec::new(), Vec::new(), &storage, &supervisor).expect("no type");
    let resource = GroupResource::new("", "configmaps");
    let options =
        |manager: &str| WriteOptions { field_manager: manager.to_owned(), ..WriteOptions::default() };
    let managers = |object: &Value| -> Vec<String> {
        let entries = object.items_at("metadata.managedFields").iter();
        entries.map(|entry| format!("{} {}", entry.str_at("manager"), entry.str_at("operation"))).collect()
    };

    let created = extensions.create(&resource, "n", config_map("a"), options("one")).await.expect("a create");
    assert_eq!(managers(&created), ["one Update"]);
    let change = |mut object: Value| {
        object.set("data.b", "2");
        Ok(object)
    };
    let updated = extensions.update(&resource, "n", "a", Box::new(change), options("two")).await;
    assert_eq!(managers(&updated.expect("an update")), ["one Update", "two Update"]);
    let config =
        json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"c": "3"}});
    let applied = extensions.apply(&resource, "n", "a", config, options("three")).await.expect("an apply");
    assert_eq!(managers(&applied), ["three Apply", "one Update", "two Update"]);
}

#[tokio::test]
async fn nothing_is_stored_without_the_client() {
    let fixture = Fixture::start(StorageMediaType::Json);
    fixture.create(config_map("a"), false).await.expect("a config map");
    fn gone<'a>(fixture: &'a Fixture, name: &'a str) -> RequestContext<'a> {
        RequestContext { client: &GoneClient, ..fixture.context(name, false) }
    }
    let warnings = Warnings::default();
    let created = fixture.store.create(&gone(&fixture, ""), config_map("b"), &AcceptAll, &warnings).await;
    let update = async |name: &str, upsert| {
        let transform = &mut Set { key: "b".to_owned(), version: None };
        let preconditions = Preconditions::default();
        fixture
            .store
            .update(&gone(&fixture, name), &DefaultStrategy, &preconditions, upsert, transform, &warnings)
            .await
            .map(|_| ())
    };
    let delete = async |options: DeleteOptions| {
        fixture.store.delete(&gone(&fixture, "a"), &options, &AcceptAll).await.map(|_| ())
    };
    let foreground =
        DeleteOptions { propagation_policy: Some(PropagationPolicy::Foreground), ..DeleteOptions::default() };
    for result in [
        created.map(|_| ()),
        update("made", Upsert::Always).await,
        update("a", Upsert::Never).await,
        delete(DeleteOptions::default()).await,
        delete(foreground).await,
    ] {
        let status = result.expect_err("no write");
        assert_eq!(status.code, 504, "{}", status.message);
    }
    assert_eq!(fixture.keys("a").await, Some(vec!["a".to_owned()]));
    for name in ["b", "made"] {
        assert_eq!(fixture.keys(name).await, None);
    }
}

#[tokio::test]
async fn an_update_of_the_server_has_preconditions() {
    let fixture = Fixture::start(StorageMediaType::Json);
    let created = fixture.create(config_map("a"), false).await.expect("a config map");
    let resource = GroupResource::new("", "configmaps");
    let update = async |uid: &str| {
        let options = WriteOptions { preconditions: Preconditions::uid(uid), ..WriteOptions::default() };
        let change = |mut object: Value| {
            object.set("data.a", "2");
            Ok(object)
        };
        fixture.stores.update(&resource, "n", "a", Box::new(change), options).await
    };
    let why = "Operation cannot be fulfilled on configmaps \"a\": StorageError: invalid object, Code: 4, Key: \
               /registry/configmaps/n/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
               precondition: other, UID in object meta: ";
    let refused = update("other").await.unwrap_err();
    assert!(refused.code == 409 && refused.message.starts_with(why), "{}", refused.message);
    assert_eq!(update(created.uid()).await.expect("an update")["data"]["a"], json!("2"));
}

#[tokio::test]
async fn writes_of_objects_that_decide_requests_are_in_force_when_they_are_answered() {
    let mut resource = config_maps();
    resource.in_force_when_answered = true;
    let fixture = Fixture::of(resource, StorageMediaType::Json);
    // The keys of the data as the cache has them now, without waiting.
    let cached = || {
        let snapshot = fixture.store.cacher().current().expect("a list");
        let object = snapshot.get(&fixture.store.key("n", "a")).cloned();
        object.map(|object| keys(&serde_json::from_slice(&object.json()).expect("JSON")))
    };
    for _ in 0..20 {
        fixture.create(config_map("a"), false).await.expect("a create");
        assert_eq!(cached(), Some(vec!["a".to_owned()]));
        fixture.set("a", "b").await.expect("an update");
        assert_eq!(cached(), Some(vec!["a".to_owned(), "b".to_owned()]));
        fixture.delete("a", DeleteOptions::default()).await.expect("a delete");
        assert_eq!(cached(), None);
    }
}

#[tokio::test]
async fn admission_reads_the_labels_of_cached_objects() {
    let fixture = Fixture::start(StorageMediaType::Json);
    let mut object = config_map("a");
    object.set("metadata.labels", json!({"a": "1", "b": "2", "c": ""}));
    let created = fixture.create(object, false).await.unwrap();
    let revision = Revision(created.resource_version().parse().unwrap());
    fixture.store.cacher().wait_for(revision).await.unwrap();
    let labels = |name| fixture.stores.labels(&fixture.store.group_resource, "n", name, &["d", "c", "a"]);
    let expected = [("c", ""), ("a", "1")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(labels("a"), Some(expected.to_vec()));
    assert_eq!(labels("b"), None);
}

/// A kind that is deleted with the client's grace period, or with one of 30 seconds.
struct Graceful;

impl Strategy for Graceful {
    fn graceful_deletion(&self, _: &RequestContext<'_>, _: &Value, requested: Option<i64>) -> Option<i64> {
        Some(requested.unwrap_or(30))
    }
}

/// A kind whose objects are all invalid, with a warning of each preparation.
struct Invalid;

impl Strategy for Invalid {
    fn preparation_warnings(&self, _: &Value) -> Vec<String> {
        vec!["prepared".to_owned()]
    }

    fn validate(&self, _: &RequestContext<'_>, _: &Value) -> ErrorList {
        vec![FieldError::required(&FieldPath::new("data"), "")]
    }

    fn warnings_on_create(&self, _: &RequestContext<'_>, _: &Value) -> Vec<String> {
        vec!["accepted".to_owned()]
    }
}

#[tokio::test]
async fn warnings_of_the_preparation_apply_to_rejected_objects_too() {
    let mut resource = config_maps();
    resource.strategy = Arc::new(Invalid);
    let fixture = Fixture::of(resource, StorageMediaType::Json);
    let (context, warnings) = (fixture.context("", false), Warnings::default());
    let created = fixture.store.create(&context, config_map("a"), &AcceptAll, &warnings).await;
    assert_eq!(created.err().map(|status| status.code), Some(422));
    let mut headers = http::HeaderMap::new();
    warnings.write_to(&mut headers);
    let texts: Vec<&str> = headers.values().map(|value| value.to_str().unwrap()).collect();
    assert_eq!(texts, ["299 - \"prepared\""]);
}

/// Records the grace periods of the deletes that it is asked about, with those that the objects have already, and refuses
/// deletes with one of them.
#[derive(Default)]
struct Recorder {
    asked: Mutex<Vec<(Option<i64>, Option<i64>)>>,
    refused: Option<i64>,
}

impl Validation for Recorder {
    fn validate<'a>(&'a self, _: &'a Value, _: Option<&'a Value>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(Err(Status::internal_error("not a delete"))))
    }

    fn validate_delete<'a>(
        &'a self,
        old: &'a Value,
        options: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let own = old.i64_at("metadata.deletionGracePeriodSeconds");
        self.asked.lock().push((options.grace_period_seconds, own));
        let is_refused = self.refused.is_some() && options.grace_period_seconds == self.refused;
        Box::pin(std::future::ready(if is_refused { Err(Status::bad_request("refused")) } else { Ok(()) }))
    }
}

#[tokio::test]
async fn admission_sees_a_delete_with_its_grace_period_and_once_more_before_the_object_is_removed() {
    let mut resource = config_maps();
    resource.strategy = Arc::new(Graceful);
    // Each delete begins with the object as the one before it has left it.
    resource.in_force_when_answered = true;
    let fixture = Fixture::of(resource, StorageMediaType::Json);
    let delete = async |grace_period_seconds: Option<i64>, refused: Option<i64>| {
        let recorder = Recorder { refused, ..Recorder::default() };
        let options = DeleteOptions { grace_period_seconds, ..DeleteOptions::default() };
        let context = fixture.context("a", false);
        let deleted = fixture.store.delete(&context, &options, &recorder).await;
        (deleted.map(|deleted| deleted.gone).map_err(|status| status.message), recorder.asked.into_inner())
    };
    fixture.create(config_map("a"), false).await.expect("a create");
    let refused = || Err("refused".to_owned());
    assert_eq!(delete(Some(7), Some(7)).await, (refused(), vec![(Some(7), None)]));
    assert_eq!(delete(None, None).await, (Ok(false), vec![(Some(30), None)]));
    // The deletion is under way and does not become shorter.
    assert_eq!(delete(None, None).await, (Ok(false), vec![]));
    assert_eq!(delete(Some(60), None).await, (Ok(false), vec![]));
    // A negative grace period is one second.
    assert_eq!(delete(Some(-4), None).await, (Ok(false), vec![(Some(1), Some(30))]));
    assert_eq!(delete(Some(0), None).await, (Ok(true), vec![(Some(0), Some(1)), (Some(0), Some(0))]));
}

#[tokio::test]
async fn create_sets_the_system_metadata_and_rejects_a_taken_name() {
    let fixture = Fixture::start(StorageMediaType::Json);
    let created = fixture.create(config_map("one"), false).await.unwrap();
    assert_eq!(created.resource_version(), "2", "the first write of an empty store");
    assert!(!created.uid().is_empty() && !created.str_at("metadata.creationTimestamp").is_empty());
    assert_eq!(fixture.keys("one").await, Some(vec!["a".to_owned()]));
    let taken = fixture.create(config_map("one"), false).await.unwrap_err();
    assert_eq!((taken.code, taken.message.as_str()), (409, "configmaps \"one\" already exists"));
    let mut versioned = config_map("two");
    versioned.set("metadata.resourceVersion", "5");
    let refused = fixture.create(versioned, false).await.unwrap_err();
    assert_eq!(refused.message, "resourceVersion should not be set on objects to be created");
}

#[tokio::test]
async fn dry_runs_answer_and_store_nothing() {
    let fixture = Fixture::start(StorageMediaType::Json);
    let created = fixture.create(config_map("one"), true).await.unwrap();
    assert_eq!((created.name(), created.resource_version()), ("one", ""));
    assert_eq!(fixture.keys("one").await, None);
    fixture.create(config_map("one"), false).await.unwrap();
    assert_eq!(fixture.create(config_map("one"), true).await.unwrap_err().code, 409);
    let transform = &mut Set { key: "b".to_owned(), version: None };
    let updated =
        fixture.update("one", &Preconditions::default(), Upsert::Never, true, transform).await.unwrap();
    assert_eq!(keys(&updated.written.object), ["a", "b"]);
    let options = DeleteOptions { dry_run: true, ..DeleteOptions::default() };
    fixture.delete("one", options).await.unwrap();
    assert_eq!(fixture.keys("one").await, Some(vec!["a".to_owned()]));
}

#[tokio::test]
async fn dry_runs_that_create_keep_the_resource_version_of_the_request() {
    let fixture = Fixture::start(StorageMediaType::Json);
    let versions = |written: &Written| {
        let json: Value = serde_json::from_slice(&written.json).unwrap();
        (written.object.resource_version().to_owned(), json.resource_version().to_owned())
    };
    let both = |version: &str| (version.to_owned(), version.to_owned());
    let update = async |dry_run| {
        let transform = &mut Set { key: "b".to_owned(), version: Some("5".to_owned()) };
        let updated =
            fixture.update("made", &Preconditions::default(), Upsert::Always, dry_run, transform).await;
        versions(&updated.unwrap().written)
    };
    assert_eq!((update(true).await, update(false).await), (both("5"), both("2")));
    let mut object = config_map("other");
    object.set("metadata.resourceVersion", "5");
    let context = fixture.context("", true);
    let created = fixture.store.create(&context, object, &AcceptAll, &Warnings::default()).await;
    assert_eq!(versions(&created.unwrap()), both("5"));
    for version in ["05", "x", "-"] {
        let mut object = config_map("other");
        object.set("metadata.resourceVersion", version);
        let created = fixture.store.create(&context, object, &AcceptAll, &Warnings::default()).await;
        assert_eq!(versions(&created.unwrap()), both(version));
    }
    let mut object = config_map("zero");
    object.set("metadata.resourceVersion", "0");
    for (dry_run, version) in [(true, "0"), (false, "3")] {
        let context = fixture.context("", dry_run);
        let created = fixture.store.create(&context, object.clone(), &AcceptAll, &Warnings::default()).await;
        assert_eq!(versions(&created.unwrap()), both(version));
    }
}

/// Refuses everything with a conflict.
struct Conflicting;

impl Validation for Conflicting {
    fn validate<'a>(&'a self, _: &'a Value, _: Option<&'a Value>) -> BoxFuture<'a, Result<(), Status>> {
        let refused = Status::conflict(&GroupResource::new("", "configmaps"), "x", "no");
        Box::pin(std::future::ready(Err(refused)))
    }
}

#[tokio::test]
async fn a_generated_name_is_a_free_one_if_possible() {
    let fixture = Fixture::start(StorageMediaType::Json);
    fixture.create(config_map("a0"), false).await.unwrap();
    // The cache has seen the object after a consistent read.
    let resource = fixture.store.resource().group_resource();
    Registry::get(&*fixture.stores, &resource, "n", "a0").await.unwrap();
    let generated = Mutex::new(0);
    let free_name = async |taken: usize| {
        *generated.lock() = 0;
        let generate = || {
            let mut generated = generated.lock();
            *generated += 1;
            format!("a{}", usize::from(*generated > taken))
        };
        (fixture.store.free_name("n", generate).await, *generated.lock())
    };
    assert_eq!(free_name(0).await, ("a1".to_owned(), 1));
    assert_eq!(free_name(7).await, ("a1".to_owned(), 8));
    assert_eq!(free_name(100).await, ("a0".to_owned(), 8));
}

#[tokio::test]
async fn only_a_name_that_is_taken_is_told_as_a_conflict_of_generated_names() {
    let fixture = Fixture::start(StorageMediaType::Json);
    let mut kept = config_map("kept");
    kept.set("metadata.finalizers", json!(["x.example.com/a"]));
    fixture.create(kept, false).await.unwrap();
    fixture.delete("kept", DeleteOptions::default()).await.unwrap();
    let create = async |validate: &dyn Validation| {
        let mut object = config_map("kept");
        object.set("metadata.generateName", "a-");
        let (context, warnings) = (fixture.context("", false), Warnings::default());
        fixture.store.create(&context, object, validate, &warnings).await.err().unwrap()
    };
    let expected = "object is being deleted: configmaps \"kept\" already exists, the server was not able to generate a \
                    unique name for the object";
    assert_eq!(create(&AcceptAll).await.message, expected);
    assert_eq!(create(&Conflicting).await.reason, StatusReason::Conflict);
}

#[tokio::test]
async fn a_self_link_is_dropped_when_an_object_is_stored() {
    struct Link;
    impl Transform for Link {
        fn apply<'a>(&'a mut self, old: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
            let mut new = old.cloned().unwrap_or_default();
            new.set("metadata.selfLink", "/x");
            Box::pin(std::future::ready(Ok(new)))
        }
    }
    let fixture = Fixture::start(StorageMediaType::Json);
    let created = fixture.create(config_map("one"), false).await.unwrap();
    for (dry_run, link) in [(true, "/x"), (false, "")] {
        let updated = fixture
            .update("one", &Preconditions::default(), Upsert::Never, dry_run, &mut Link)
            .await
            .unwrap();
        let object: Value = serde_json::from_slice(&updated.written.json).unwrap();
        assert_eq!(object.str_at("metadata.selfLink"), link);
        assert_eq!(object.resource_version(), created.resource_version());
        let mut linked = config_map("two");
        linked.set("metadata.selfLink", "/x");
        let created = fixture.create(linked, dry_run).await.unwrap();
        assert_eq!(created.str_at("metadata.selfLink"), link);
    }
}

#[tokio::test]
async fn update_checks_preconditions_and_the_resource_version() {
    let fixture = Fixture::start(StorageMediaType::Json);
    let created = fixture.create(config_map("one"), false).await.unwrap();
    let uid = |uid: &str| Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() };
    let version = |version: &str| Preconditions {
        resource_version: Some(version.to_owned()),
        ..Preconditions::default()
    };
    let rows = [
        (uid(created.uid()), None, None),
        (uid("other"), None, Some("Precondition failed: UID in precondition: other")),
        (version("1"), None, Some("Precondition failed: ResourceVersion in precondition: 1")),
        (Preconditions::default(), Some("1"), Some(crate::errors::OPTIMISTIC_LOCK)),
        (Preconditions::default(), Some(created.resource_version()), None),
    ];
    for (preconditions, version, refused) in rows {
        let transform = &mut Set { key: "a".to_owned(), version: version.map(str::to_owned) };
        let updated = fixture.update("one", &preconditions, Upsert::Never, false, transform).await;
        match (updated, refused) {
            // The change is empty, so nothing is written.
            (Ok(updated), None) => {
                assert_eq!(updated.written.object.resource_version(), created.resource_version());
            }
            (Err(status), Some(message)) => {
                assert_eq!(status.code, 409);
                assert!(status.message.contains(message), "{}", status.message);
            }
            (updated, _) => panic!("{preconditions:?} {version:?}: {:?}", updated.err()),
        }
    }
    assert_eq!(fixture.set("none", "b").await.unwrap_err().code, 404);
    let transform = &mut Set { key: "a".to_owned(), version: None };
    let refused =
        fixture.update("none", &uid("other"), Upsert::Always, false, transform).await.err().unwrap();
    let why = "StorageError: invalid object, Code: 4, Key: /registry/configmaps/n/none, ResourceVersion: 0, \
               AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: ";
    assert!(refused.message.ends_with(why), "{}", refused.message);
    let transform = &mut Set { key: "b".to_owned(), version: None };
    let made = fixture.update("made", &Preconditions::default(), Upsert::Always, false, transform).await;
    assert!(made.unwrap().created);
    assert_eq!(fixture.keys("made").await, Some(vec!["a".to_owned(), "b".to_owned()]));
}

#[tokio::test]
async fn an_update_that_loses_against_another_is_made_again_on_its_result() {
    struct Races<'a> {
        fixture: &'a Fixture,
        calls: usize,
    }
    impl Transform for Races<'_> {
        fn apply<'a>(&'a mut self, old: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
            Box::pin(async move {
                self.calls += 1;
                if self.calls == 1 {
                    self.fixture.set("one", "theirs").await?;
                }
                let mut new = old.cloned().unwrap_or_default();
                new.set("data.ours", "1");
                Ok(new)
            })
        }
    }
    let fixture = Fixture::start(StorageMediaType::Json);
    fixture.create(config_map("one"), false).await.unwrap();
    let mut races = Races { fixture: &fixture, calls: 0 };
    let updated = fixture.update("one", &Preconditions::default(), Upsert::Never, false, &mut races).await;
    let mut keys = keys(&updated.unwrap().written.object);
    keys.sort_unstable();
    assert_eq!((keys, races.calls), (["a", "ours", "theirs"].map(str::to_owned).to_vec(), 2));
}

#[tokio::test]
async fn delete_checks_preconditions_and_waits_for_finalizers() {
    let fixture = Fixture::start(StorageMediaType::Json);
    let created = fixture.create(config_map("one"), false).await.unwrap();
    let uid =
        |uid: &str| DeleteOptions { preconditions: Preconditions::uid(uid), ..DeleteOptions::default() };
    let refused = fixture.delete("one", uid("other")).await.err().unwrap();
    assert_eq!(refused.code, 409);
    assert!(refused.message.contains("the UID in the precondition (other)"), "{}", refused.message);
    assert!(fixture.delete("one", uid(created.uid())).await.unwrap().gone);
    assert_eq!(fixture.keys("one").await, None);
    assert_eq!(fixture.delete("one", DeleteOptions::default()).await.err().unwrap().code, 404);

    for (finalizers, policy, answer) in [
        (json!(null), PropagationPolicy::Background, DeleteAnswer::Status),
        (json!(["orphan"]), PropagationPolicy::Background, DeleteAnswer::EmptyObject),
        (json!(["orphan"]), PropagationPolicy::Orphan, DeleteAnswer::Object),
    ] {
        let mut object = config_map("three");
        object.set("metadata.finalizers", finalizers);
        fixture.create(object, false).await.unwrap();
        let background = |dry_run| DeleteOptions {
            dry_run,
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteOptions::default()
        };
        let options = DeleteOptions { propagation_policy: Some(policy), ..background(true) };
        assert_eq!(fixture.delete("three", options).await.unwrap().answer, answer);
        assert_eq!(fixture.delete("three", background(false)).await.unwrap().answer, DeleteAnswer::Status);
    }

    let mut finalized = config_map("two");
    finalized.set("metadata.finalizers", json!(["example.com/wait"]));
    fixture.create(finalized, false).await.unwrap();
    let deleted = fixture.delete("two", DeleteOptions::default()).await.unwrap();
    assert!(!deleted.gone && deleted.object.is_terminating());
    struct Finalize;
    impl Transform for Finalize {
        fn apply<'a>(&'a mut self, old: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
            let mut new = old.cloned().unwrap_or_default();
            new.remove_at("metadata.finalizers");
            Box::pin(std::future::ready(Ok(new)))
        }
    }
    let last =
        fixture.update("two", &Preconditions::default(), Upsert::Never, false, &mut Finalize).await.unwrap();
    assert_eq!(fixture.keys("two").await, None);
    // The object of the response was never stored.
    assert_eq!(last.written.object.resource_version(), deleted.object.resource_version());
}

/// A kind whose deletion begins with its status.
struct Announced(FirstPropagation);

impl Strategy for Announced {
    fn begins_deletion_with_status(&self) -> bool {
        true
    }

    fn first_propagation(&self) -> FirstPropagation {
        self.0
    }
}

#[tokio::test]
async fn a_deletion_that_begins_with_the_status_ends_with_another_request() {
    let mut resource = config_maps();
    resource.in_force_when_answered = true;
    let rows = [
        (FirstPropagation::ForegroundUnlessOrphaned, vec!["orphan"], vec!["foregroundDeletion"]),
        (FirstPropagation::Ignored, vec![], vec![]),
    ];
    for (first, orphaned, not_orphaned) in rows {
        let mut resource = resource.clone();
        resource.strategy = Arc::new(Announced(first));
        let fixture = Fixture::of(resource, StorageMediaType::Json);
        let mut counted = config_map("one");
        counted.set("metadata.generation", 3);
        fixture.create(counted, false).await.unwrap();
        let begun = fixture.delete("one", DeleteOptions::default()).await.unwrap();
        assert!(!begun.gone && begun.object.is_terminating());
        assert_eq!(begun.object.generation(), 3);
        assert_eq!(begun.object.at("metadata.deletionGracePeriodSeconds"), None);
        assert!(fixture.delete("one", DeleteOptions::default()).await.unwrap().gone);

        let orphan =
            DeleteOptions { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteOptions::default() };
        fixture.create(config_map("two"), false).await.unwrap();
        let begun = fixture.delete("two", orphan.clone()).await.unwrap();
        assert_eq!(begun.object.finalizers(), orphaned);
        let later = fixture.delete("two", orphan).await.unwrap();
        assert_eq!(later.object.finalizers(), ["orphan"]);

        let options = DeleteOptions { orphan_dependents: Some(false), ..DeleteOptions::default() };
        fixture.create(config_map("three"), false).await.unwrap();
        let begun = fixture.delete("three", options).await.unwrap();
        assert_eq!(begun.object.finalizers(), not_orphaned);
    }
}

#[tokio::test]
async fn an_error_of_the_store_is_internal_when_a_deletion_begins_with_the_status() {
    let rows: [(Arc<dyn Strategy>, _); 2] = [
        (Arc::new(DefaultStrategy), StatusReason::Unknown),
        (Arc::new(Announced(FirstPropagation::Ignored)), StatusReason::InternalError),
    ];
    for (strategy, reason) in rows {
        let mut resource = config_maps();
        resource.strategy = strategy;
        let mut object = config_map("one");
        object.set("metadata.finalizers", json!(["example.com/kept"]));
        // The object fits, and its time of deletion does not.
        let mut limit = 0;
        let fixture = loop {
            limit += 10;
            let fixture =
                Fixture::on(MemoryStorage::new().with_limit(limit), resource.clone(), StorageMediaType::Json);
            if fixture.create(object.clone(), false).await.is_ok() {
                break fixture;
            }
        };
        let Err(refused) = fixture.delete("one", DeleteOptions::default()).await else {
            panic!("it is stored")
        };
        assert_eq!((refused.code, &refused.reason), (500, &reason), "{}", refused.message);
    }
}

/// A kind that the garbage collector ignores.
struct Uncollected;

impl Strategy for Uncollected {
    fn garbage_collection_policy(&self) -> GarbageCollectionPolicy {
        GarbageCollectionPolicy::Unsupported
    }
}

#[tokio::test]
async fn a_propagation_policy_has_no_effect_on_a_kind_that_the_garbage_collector_ignores() {
    let mut resource = config_maps();
    resource.strategy = Arc::new(Uncollected);
    // Each delete begins with the object as it was stored.
    resource.in_force_when_answered = true;
    let fixture = Fixture::of(resource, StorageMediaType::Json);
    for (policy, finalizer) in
        [(PropagationPolicy::Foreground, "foregroundDeletion"), (PropagationPolicy::Orphan, "orphan")]
    {
        let options = || DeleteOptions { propagation_policy: Some(policy), ..DeleteOptions::default() };
        fixture.create(config_map("one"), false).await.unwrap();
        assert!(fixture.delete("one", options()).await.unwrap().gone);
        // A finalizer of the collector is not waited for either: nothing would remove it.
        let mut finalized = config_map("two");
        finalized.set("metadata.finalizers", json!([finalizer]));
        fixture.create(finalized, false).await.unwrap();
        assert!(fixture.delete("two", options()).await.unwrap().gone);
    }
}

#[tokio::test]
async fn the_event_of_a_write_has_the_contents_that_the_cache_needs() {
    for media_type in [StorageMediaType::Json, StorageMediaType::Protobuf, StorageMediaType::Yaml] {
        let fixture = Fixture::start(media_type);
        let request = WatchRequest { prefix: "/registry/".to_owned(), after: Revision(0) };
        let mut stream = fixture.store.storage().watch(request).await.unwrap();
        fixture.create(config_map("one"), false).await.unwrap();
        fixture.set("one", "b").await.unwrap();
        let mut writes = 0;
        while writes < 2 {
            for event in stream.next_batch().await.unwrap() {
                let StorageEvent::Write { kv, .. } = event else { continue };
                writes += 1;
                let selectable = kv.value.decoded::<Selectable>().expect("a write of this process");
                assert_eq!(selectable.labels.get("app"), Some("web"), "{media_type:?}");
                assert!(kv.value.starts_with(b"{"), "{media_type:?}: the registry's JSON");
            }
        }
    }
}

#[tokio::test]
async fn objects_that_match_are_found_one_after_the_other() {
    let fixture = Fixture::start(StorageMediaType::Json);
    for name in ["a", "b", "c", "d"] {
        fixture.create(config_map(name), false).await.expect("a config map");
    }
    let seen = Mutex::new(Vec::new());
    let matches = |object: &Value| {
        seen.lock().push(object.name().to_owned());
        object.name() != "a"
    };
    let resource = GroupResource::new("", "configmaps");
    let found = fixture.stores.list_matching(&resource, "n", 2, &matches).await.expect("a list");
    let names: Vec<_> = found.iter().map(|object| object.name()).collect();
    assert_eq!(names, ["b", "c"]);
    assert_eq!(*seen.lock(), ["a", "b", "c"], "no more objects are decoded");
}

#[tokio::test]
async fn objects_are_selected_by_their_labels_and_decoded_later() {
    let fixture = Fixture::start(StorageMediaType::Json);
    for (name, label) in [("a", "yes"), ("b", "no"), ("c", "yes")] {
        let mut object = config_map(name);
        object.set("metadata.labels", json!({"selected": label}));
        fixture.create(object, false).await.expect("a config map");
    }
    let selector = LabelSelector::parse("selected=yes").expect("a selector");
    let resource = GroupResource::new("", "configmaps");
    fixture.stores.catch_up(&resource).await;
    let selected = fixture.stores.select(&resource, "n", &selector).expect("the cache has them");
    fixture.delete("c", DeleteOptions::default()).await.expect("a deletion");
    let mut names = Vec::new();
    for object in &selected {
        names.push(object.decode().await.expect("an object").name().to_owned());
    }
    assert_eq!(names, ["a", "c"], "each is in the state in which it was found");
}

fn many_managers() -> Value {
    let managers = (0..8).map(|number| {
        json!({
            "manager": format!("manager-{number}"), "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {"f:a": {}}}
        })
    });
    Value::Array(managers.collect())
}

/// Adds managed fields, which are larger than the rest.
struct Manage {
    data: &'static str,
    is_apply: bool,
}

impl Transform for Manage {
    fn apply<'a>(&'a mut self, old: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        let mut new = old.cloned().unwrap_or_else(|| config_map("made"));
        new.set("data.a", self.data);
        new.set("metadata.managedFields", many_managers());
        Box::pin(std::future::ready(Ok(new)))
    }

    fn may_drop_managed_fields(&self) -> bool {
        !self.is_apply
    }
}

#[tokio::test]
async fn objects_that_are_too_large_are_stored_without_managed_fields() {
    let resource = config_maps();
    let fixture = Fixture::on(MemoryStorage::new().with_limit(600), resource, StorageMediaType::Json);
    let managed = |object: &Value| object.at("metadata.managedFields").is_some();

    let mut object = config_map("one");
    object.set("metadata.managedFields", many_managers());
    assert!(!managed(&fixture.create(object, false).await.unwrap()));

    let mut change = Manage { data: "changed", is_apply: false };
    for (name, created) in [("one", false), ("made", true)] {
        let updated = fixture
            .update(name, &Preconditions::default(), Upsert::Always, false, &mut change)
            .await
            .unwrap();
        assert_eq!((updated.created, managed(&updated.written.object)), (created, false), "{name}");
        assert_eq!(updated.written.object.str_at("data.a"), "changed");
    }

    // The managed fields are what an apply is about.
    let mut apply = Manage { data: "applied", is_apply: true };
    let refused = fixture.update("one", &Preconditions::default(), Upsert::Never, false, &mut apply).await;
    assert_eq!(refused.err().unwrap().message, "the value is too large");

    // Without them the object is too large as well.
    let mut large = config_map("large");
    large.set("data.a", "a".repeat(600));
    let refused = fixture.create(large, false).await.unwrap_err();
    assert_eq!((refused.code, refused.message.as_str()), (500, "the value is too large"));
}

#[tokio::test]
async fn a_write_whose_outcome_is_unknown_is_not_repeated() {
    let storage = TestStorage::new();
    let engine = Engine { storage: storage.clone(), exclusive: false };
    let resource = config_maps();
    let fixture = Fixture::on_engine(engine, resource, StorageMediaType::Json);
    fixture.create(config_map("m"), false).await.expect("created");
    assert_eq!(fixture.keys("m").await.expect("a map"), ["a"]);
    let version = fixture.set("m", "b").await.expect("updated").resource_version().to_owned();
    // The cache has the object, which the writes are based on.
    assert_eq!(fixture.keys("m").await.expect("a map"), ["a", "b"]);
    storage.control(|controls| controls.unanswered = true);
    let lost = |status: Status| status.message.contains("the connection was lost");
    let transform = &mut Set { key: "c".to_owned(), version: Some(version) };
    let updated = fixture.update("m", &Preconditions::default(), Upsert::Never, false, transform).await;
    assert!(lost(updated.err().expect("no answer")), "a second attempt conflicts with the first one");
    assert_eq!(fixture.keys("m").await.expect("a map"), ["a", "b", "c"]);
    let deleted = fixture.delete("m", DeleteOptions::default()).await;
    assert!(lost(deleted.err().expect("no answer")), "a second attempt finds nothing");
    assert_eq!(fixture.keys("m").await, None);
}
