//! A registry for unit tests: a map in memory, without strategies, versions or admission.

use crate::{
    BoxFuture, Client, DeleteOptions, EmptyFields, PatientClient, Registry, RequestContext, WriteOptions,
};
use pintle_machinery::{
    GroupResource, GroupVersion, Status, UserInfo, Value, ValueExt,
    managed_fields::{FieldManager, OneVersion},
    meta::ObjectMeta,
};
use pintle_schema::Schema;
use std::{
    collections::BTreeMap,
    future::Future,
    ops::ControlFlow,
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

type ObjectKey = (GroupResource, String, String);

/// Objects by resource, namespace and name. Each write assigns a resourceVersion; a create assigns a uid.
#[derive(Debug, Default)]
pub struct MemoryRegistry {
    objects: Mutex<Objects>,
}

#[derive(Debug, Default)]
struct Objects {
    by_key: BTreeMap<ObjectKey, Value>,
    revision: u64,
}

impl MemoryRegistry {
    /// The stored object, if it exists.
    pub fn stored(&self, resource: &GroupResource, namespace: &str, name: &str) -> Option<Value> {
        self.lock().by_key.get(&object_key(resource, namespace, name)).cloned()
    }

    /// The number of writes so far.
    pub fn revision(&self) -> u64 {
        self.lock().revision
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Objects {
    fn put(&mut self, key: ObjectKey, mut object: Value, dry_run: bool) -> Value {
        if !dry_run {
            self.revision += 1;
            object.set("metadata.resourceVersion", self.revision.to_string());
            object.set_default("metadata.uid", format!("uid-{}", self.revision));
            self.by_key.insert(key, object.clone());
        }
        object
    }
}

fn object_key(resource: &GroupResource, namespace: &str, name: &str) -> ObjectKey {
    (resource.clone(), namespace.to_owned(), name.to_owned())
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl Registry for MemoryRegistry {
    fn get<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        let object = self.stored(resource, namespace, name);
        ready(object.ok_or_else(|| Status::not_found(resource, name)))
    }

    fn visit<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        visit: &'a mut (dyn FnMut(Value) -> ControlFlow<()> + Send),
    ) -> BoxFuture<'a, Result<(), Status>> {
        let objects = self.lock();
        let of_resource = objects.by_key.iter().filter(|((own, in_namespace, _), _)| {
            own == resource && (namespace.is_empty() || in_namespace == namespace)
        });
        let _ = of_resource.map(|(_, object)| object.clone()).try_for_each(visit);
        ready(Ok(()))
    }

    fn create<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        mut object: Value,
        options: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        if !namespace.is_empty() {
            object.set("metadata.namespace", namespace);
        }
        let key = object_key(resource, namespace, object.name());
        let mut objects = self.lock();
        if objects.by_key.contains_key(&key) {
            return ready(Err(Status::already_exists(resource, object.name())));
        }
        ready(Ok(objects.put(key, object, options.dry_run)))
    }

    fn update<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
        mut change: Box<dyn FnMut(Value) -> Result<Value, Status> + Send + 'a>,
        options: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        let mut objects = self.lock();
        let key = object_key(resource, namespace, name);
        let Some(old) = objects.by_key.get(&key).cloned() else {
            return ready(Err(Status::not_found(resource, name)));
        };
        if let Some(unmet) = options.preconditions.unmet_by(&old) {
            return ready(Err(Status::conflict(resource, name, &unmet.of_change())));
        }
        ready(match change(old.clone()) {
            Ok(new) if new == old => Ok(old),
            Ok(new) => Ok(objects.put(key, new, options.dry_run)),
            Err(status) => Err(status),
        })
    }

    fn apply<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
        configuration: Value,
        options: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        let kind = configuration.str_at("kind").to_owned();
        let api_version = configuration.str_at("apiVersion").to_owned();
        let version = GroupVersion::parse(&api_version).expect("a version");
        let manager = FieldManager {
            manager: &options.field_manager,
            kind: &kind,
            api_version: &api_version,
            subresource: options.subresource,
            now: jiff::Timestamp::UNIX_EPOCH,
            schema: Schema::builtin().by_kind(&version.group, &version.version, &kind).expect("a type"),
            reset_fields: &[],
            empty_fields: &[],
            versions: &OneVersion,
        };
        let mut objects = self.lock();
        let key = object_key(resource, namespace, name);
        let Some(old) = objects.by_key.get(&key).cloned() else {
            return ready(Err(Status::not_found(resource, name)));
        };
        ready(match manager.apply(Some(&old), &configuration, true) {
            Ok(applied) if applied.object == old => Ok(old),
            Ok(applied) => Ok(objects.put(key, applied.object, options.dry_run)),
            Err(status) => Err(status),
        })
    }

    fn delete<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
        options: DeleteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        let mut objects = self.lock();
        let key = object_key(resource, namespace, name);
        let Some(object) = objects.by_key.get(&key).cloned() else {
            return ready(Err(Status::not_found(resource, name)));
        };
        if options.preconditions.unmet_by(&object).is_some() {
            return ready(Err(Status::conflict(
                resource,
                name,
                "the UID in the precondition does not match",
            )));
        }
        if !options.dry_run {
            objects.revision += 1;
            objects.by_key.remove(&key);
        }
        ready(Ok(object))
    }
}

/// A client that has left.
#[derive(Debug, Clone, Copy)]
pub struct GoneClient;

impl Client for GoneClient {
    fn is_gone(&self) -> bool {
        true
    }

    fn gone(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}

/// Runs `test` with the context of a request to a namespace, at the epoch, by a user without groups.
pub fn with_context<T>(
    registry: &dyn Registry,
    namespace: &str,
    dry_run: bool,
    test: impl FnOnce(&RequestContext<'_>) -> T,
) -> T {
    test(&RequestContext {
        user: &UserInfo::default(),
        verb: "update",
        namespace,
        name: "",
        subresource: "",
        group_version: &GroupVersion::new("", "v1"),
        now: jiff::Timestamp::UNIX_EPOCH,
        dry_run,
        empty_fields: &EmptyFields::default(),
        registry,
        authorizer: &pintle_auth::authz::AlwaysAllow,
        client: &PatientClient,
    })
}

/// The result of a future that is ready at once, such as those of a [`MemoryRegistry`].
///
/// # Panics
/// When the future is pending.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits for something outside the test"),
    }
}
