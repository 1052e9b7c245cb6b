//! Reads and writes objects for code inside the server: strategies, admission, controllers.

use super::{
    AcceptAll, Conversions, ManagedWrite, Store, Stores, Transform, Upsert, VersionedResource,
    update::Updated,
};
use crate::{base::warning::Warnings, errors};
use jiff::Timestamp;
use pintle_auth::authz::AlwaysAllow;
use pintle_cacher::Freshness;
use pintle_machinery::{
    GroupResource, GroupVersion, GroupVersionKind, Status, UserInfo, Value,
    user::{APISERVER_USER, SYSTEM_MASTERS},
};
use pintle_offload::{Pace, weigh};
use pintle_registry::{
    BoxFuture, DeleteOptions, EmptyFields, PatientClient, Registry, RequestContext, Scope, ServedKind,
    WriteOptions,
};
use std::{
    borrow::Cow,
    ops::ControlFlow,
    sync::{LazyLock, OnceLock},
};

static SERVER_USER: LazyLock<UserInfo> = LazyLock::new(|| UserInfo {
    name: APISERVER_USER.to_owned(),
    groups: vec![SYSTEM_MASTERS.to_owned()],
    ..UserInfo::default()
});

/// The parts of a request context for a write from inside the server.
struct Inner<'a> {
    options: &'a WriteOptions,
    namespace: &'a str,
    name: &'a str,
    version: GroupVersion,
    empty_fields: EmptyFields,
}

impl<'a> Inner<'a> {
    fn new(store: &Store, options: &'a WriteOptions, namespace: &'a str, name: &'a str) -> Inner<'a> {
        let version = store.resource().resource.group_version();
        Inner { options, namespace, name, version, empty_fields: EmptyFields::default() }
    }

    fn context<'b>(&'b self, registry: &'b dyn Registry) -> RequestContext<'b> {
        RequestContext {
            user: self.options.user.as_ref().unwrap_or(&SERVER_USER),
            verb: "update",
            namespace: self.namespace,
            name: self.name,
            subresource: self.options.subresource,
            group_version: &self.version,
            now: Timestamp::now(),
            dry_run: self.options.dry_run,
            empty_fields: &self.empty_fields,
            registry,
            authorizer: &AlwaysAllow,
            client: &PatientClient,
        }
    }
}

impl Stores {
    /// Updates the managed fields of a write from inside the server, if it names a field manager.
    async fn manage(&self, store: &Store, options: &WriteOptions, old: Option<&Value>, new: &mut Value) {
        if options.field_manager.is_empty() {
            return;
        }
        let Some(resource) = self.find_among_all(&store.resource().resource) else { return };
        self.managed_write(&resource, options).update(old, new).await;
    }

    fn managed_write<'a>(
        &'a self,
        resource: &'a VersionedResource,
        options: &'a WriteOptions,
    ) -> ManagedWrite<'a> {
        ManagedWrite {
            stores: self,
            resource,
            manager: Cow::Borrowed(&options.field_manager),
            subresource: options.subresource,
            now: Timestamp::now(),
            empty_fields: Vec::new(),
            versions: OnceLock::new(),
            conversions: Conversions::default(),
        }
    }

    /// Updates the object with a transform, under the strategy of the resource or subresource.
    async fn transform(
        &self,
        store: &Store,
        (namespace, name): (&str, &str),
        options: &WriteOptions,
        transform: &mut dyn Transform,
    ) -> Result<Value, Status> {
        let inner = Inner::new(store, options, namespace, name);
        let updated: Updated = store
            .update(
                &inner.context(self),
                store.strategy(options.subresource)?,
                &options.preconditions,
                Upsert::Never,
                transform,
                &Warnings::default(),
            )
            .await?;
        Ok(updated.written.object)
    }

    async fn read(
        &self,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
        freshness: Freshness,
    ) -> Result<Value, Status> {
        let store = self.store(resource)?;
        let object = store.find(&store.key(namespace, name), freshness).await?;
        let object = object.ok_or_else(|| Status::not_found(resource, name))?;
        store.tree(&object.json()).await
    }
}

impl Registry for Stores {
    fn get<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(self.read(resource, namespace, name, Freshness::Consistent))
    }

    fn get_cached<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(self.read(resource, namespace, name, Freshness::Any))
    }

    fn visit<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        visit: &'a mut (dyn FnMut(Value) -> ControlFlow<()> + Send),
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let store = self.store(resource)?;
            let prefix = store.key_prefix(namespace);
            let read = store.cacher().list(&prefix, Freshness::Consistent).await;
            let snapshot = read.map_err(errors::cacher)?;
            // Code inside the server acts on the absence of objects.
            store.require_readable(&snapshot, &prefix)?;
            let (mut bytes, mut pace) = (0, Pace::new());
            for object in snapshot.range(&prefix, None) {
                let json = object.json();
                bytes += json.len();
                weigh(bytes).await;
                pace.breathe().await;
                if visit(store.tree(&json).await?).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn served(&self, kind: &GroupVersionKind) -> Option<ServedKind> {
        let found = self.find_kind(kind)?;
        let resource = &found.resource;
        let namespaced = resource.scope == Scope::Namespaced;
        Some(ServedKind { resource: resource.resource.clone(), namespaced })
    }

    fn convert<'a>(
        &'a self,
        object: &'a Value,
        kind: &'a GroupVersionKind,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let version = self.find_kind(kind).ok_or_else(Status::no_such_resource)?;
            version.converted(object).await.map(Cow::into_owned)
        })
    }

    fn create<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        mut object: Value,
        options: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let store = self.store(resource)?;
            store.set_defaults(&mut object);
            let inner = Inner::new(&store, &options, namespace, "");
            self.manage(&store, &options, None, &mut object).await;
            let warnings = Warnings::default();
            let written = store.create(&inner.context(self), object, &AcceptAll, &warnings).await?;
            Ok(written.object)
        })
    }

    fn update<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
        change: Box<dyn FnMut(Value) -> Result<Value, Status> + Send + 'a>,
        options: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let store = self.store(resource)?;
            let mut transform = Change { change, store: &store, stores: self, options: &options };
            self.transform(&store, (namespace, name), &options, &mut transform).await
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
        Box::pin(async move {
            let store = self.store(resource)?;
            let found =
                self.find_among_all(&store.resource().resource).ok_or_else(Status::no_such_resource)?;
            let write = self.managed_write(&found, &options);
            let mut transform = Application { configuration, store: &store, write };
            self.transform(&store, (namespace, name), &options, &mut transform).await
        })
    }

    fn delete<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
        options: DeleteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let store = self.store(resource)?;
            let write = WriteOptions { dry_run: options.dry_run, ..WriteOptions::default() };
            let inner = Inner::new(&store, &write, namespace, name);
            let deleted = store.delete(&inner.context(self), &options, &AcceptAll).await?;
            Ok(deleted.object)
        })
    }
}

struct Change<'a> {
    change: Box<dyn FnMut(Value) -> Result<Value, Status> + Send + 'a>,
    store: &'a Store,
    stores: &'a Stores,
    options: &'a WriteOptions,
}

impl Transform for Change<'_> {
    fn apply<'a>(&'a mut self, old: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let mut new = (self.change)(old.cloned().unwrap_or_default())?;
            self.store.set_defaults(&mut new);
            self.stores.manage(self.store, self.options, old, &mut new).await;
            Ok(new)
        })
    }
}

/// A server-side apply by the server itself.
struct Application<'a> {
    configuration: Value,
    store: &'a Store,
    write: ManagedWrite<'a>,
}

impl Transform for Application<'_> {
    fn apply<'a>(&'a mut self, old: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let mut new = self.write.apply(old, &self.configuration, true).await?.object;
            self.store.set_defaults(&mut new);
            Ok(new)
        })
    }
}
