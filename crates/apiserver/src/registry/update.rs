//! Changing an object: guaranteed update.
//!
//! The cached object is the first guess of what is stored. When the store says otherwise, the change is made again on
//! what it has; a refusal that rests on a guess is never told to the client before the store has confirmed the guess.

use super::{
    Store, Written,
    create::{fill_system_metadata, finish_with, metadata},
};
use crate::{errors, offload::weigh, warning::Warnings};
use bytes::Bytes;
use pintle_machinery::{
    FieldError, FieldPath, GroupKind, GroupResource, Status, Value, ValueExt,
    managed_fields::keep_times,
    meta::ObjectMeta,
    validation::{
        validate_object_meta_accessor, validate_object_meta_accessor_update, validate_path_segment_name,
    },
};
use pintle_registry::{BoxFuture, RequestContext, Strategy};
use pintle_storage::{KeyValue, ReadError, Revision, TransformError, ValueState, WriteError};

/// Makes the new object of the old one. Called again when another writer came first.
pub trait Transform: Send {
    /// The new object; `None` is the object before its creation by PUT.
    fn apply<'a>(&'a mut self, old: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>>;

    /// Whether validating admission accepts the new object.
    fn validate<'a>(
        &'a mut self,
        _new: &'a Value,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What the stored object must be for a write to happen.
#[derive(Debug, Clone, Default)]
pub struct Preconditions {
    /// Its uid.
    pub uid: Option<String>,
    /// Its resourceVersion.
    pub resource_version: Option<String>,
}

/// The outcome of an update.
pub struct Updated {
    /// The object as it is now.
    pub written: Written,
    /// Whether the update created it.
    pub created: bool,
}

/// How an update treats an object that is not there, and a PUT without resourceVersion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upsert {
    /// As the strategy says.
    Strategy,
    /// It must be there.
    Never,
    /// It is created, whatever the strategy says.
    Always,
}

/// What is stored now, or believed to be.
pub(super) struct Current {
    pub(super) object: Value,
    pub(super) stored: Bytes,
    pub(super) revision: Revision,
    /// Whether it was read from the store itself.
    pub(super) confirmed: bool,
    /// Whether what is stored is not what would be stored now. Known only when confirmed.
    pub(super) stale: bool,
}

impl Store {
    /// Changes the object of `context.name` with `transform` under a strategy (the resource's own, or that of a part).
    ///
    /// # Errors
    /// The `Status` for the client.
    pub async fn update(
        &self,
        context: &RequestContext<'_>,
        strategy: &dyn Strategy,
        preconditions: &Preconditions,
        upsert: Upsert,
        transform: &mut dyn Transform,
        warnings: &Warnings,
    ) -> Result<Updated, Status> {
        let mut current = self.guess(context.namespace, context.name).await?;
        if context.dry_run && current.as_ref().is_some_and(|current| !current.confirmed) {
            // There is no write that would find out that the guess is wrong.
            current = self.read_current(context.namespace, context.name).await?;
        }
        loop {
            let confirmed = current.as_ref().is_none_or(|current| current.confirmed);
            let attempt = match &current {
                Some(current) => {
                    self.try_update(context, strategy, preconditions, transform, warnings, current).await
                }
                None => self.create_by_update(context, upsert, preconditions, transform, warnings).await,
            };
            match attempt {
                Ok(updated) => return Ok(updated),
                Err(Failure::Conflict(kv)) => current = self.current_of(kv).await?,
                Err(Failure::Final(status)) if confirmed => return Err(status),
                Err(Failure::Final(status)) => {
                    let stale = current.as_ref().map(|current| current.revision);
                    current = self.read_current(context.namespace, context.name).await?;
                    if current.as_ref().map(|current| current.revision) == stale {
                        return Err(status);
                    }
                }
            }
        }
    }

    async fn try_update(
        &self,
        context: &RequestContext<'_>,
        strategy: &dyn Strategy,
        preconditions: &Preconditions,
        transform: &mut dyn Transform,
        warnings: &Warnings,
        current: &Current,
    ) -> Result<Updated, Failure> {
        let old = &current.object;
        self.check_preconditions(preconditions, old, &self.group_resource)?;
        let mut new = transform.apply(Some(old)).await?;
        self.drop_unkept(&mut new);
        if let Some(authorized) = strategy.authorize_write(context, &new, Some(old)) {
            authorized.await?;
        }
        self.check_namespace(&mut new, context.namespace)?;
        let version = new.resource_version();
        if version.is_empty() || version == "0" {
            if !strategy.allow_unconditional_update() {
                let path = FieldPath::new("metadata").child("resourceVersion");
                let error = FieldError::invalid(&path, 0, "must be specified for an update");
                let resource = &self.group_resource;
                let kind = GroupKind::new(resource.group.clone(), resource.resource.clone());
                return Err(Status::invalid(&kind, context.name, &vec![error]).into());
            }
            new.set("metadata.resourceVersion", old.resource_version());
        } else if version.parse::<u64>().is_err() {
            return Err(invalid_resource_version(version).into());
        } else if version != old.resource_version() {
            return Err(Status::conflict(&self.group_resource, context.name, OPTIMISTIC_LOCK).into());
        }
        let finish = strategy.begin_update(context, &mut new, old).await?;
        let result = self.finish_update(context, strategy, transform, warnings, current, new).await;
        finish_with(finish, result.is_ok(), context).await;
        result
    }

    async fn finish_update(
        &self,
        context: &RequestContext<'_>,
        strategy: &dyn Strategy,
        transform: &mut dyn Transform,
        warnings: &Warnings,
        current: &Current,
        mut new: Value,
    ) -> Result<Updated, Failure> {
        let old = &current.object;
        self.before_update(context, strategy, &mut new, old, warnings)?;
        keep_times(old, &mut new);
        transform.validate(&new, Some(old)).await?;
        let ends = should_delete_during_update(strategy, &new, old);
        let stored = self.encode(&mut new).await?;
        let updated = |written| Updated { written, created: false };
        if ends && !context.dry_run {
            return match self
                .storage
                .delete(&self.key(context.namespace, context.name), current.revision)
                .await
            {
                Ok(revision) => {
                    self.resource.strategy.after_delete(context, &new).await;
                    Ok(updated(self.written(new, &stored, Some(revision)).await?))
                }
                Err(error) => Err(self.write_failure(error, context.name)),
            };
        }
        // What is stale is written all the same: it ends up as it would be stored now.
        if stored.bytes == current.stored && !current.stale {
            if current.confirmed || context.dry_run {
                return Ok(updated(self.written(new, &stored, Some(current.revision)).await?));
            }
            // The guess may be old, and then the change is none only by accident.
            let kv = self
                .storage
                .get(&self.key(context.namespace, context.name))
                .await
                .map_err(errors::storage)?
                .kv;
            return match kv {
                Some(kv) if kv.mod_revision == current.revision && kv.state == ValueState::Current => {
                    Ok(updated(self.written(new, &stored, Some(current.revision)).await?))
                }
                kv => Err(Failure::Conflict(kv)),
            };
        }
        if context.dry_run {
            return Ok(updated(self.written(new, &stored, Some(current.revision)).await?));
        }
        let key = self.key(context.namespace, context.name);
        let ttl = strategy.ttl(&new);
        self.announce(&stored, &new);
        match self.storage.update(&key, stored.bytes.clone(), current.revision, ttl).await {
            Ok(revision) => Ok(updated(self.written(new, &stored, Some(revision)).await?)),
            Err(error) => Err(self.write_failure(error, context.name)),
        }
    }

    async fn create_by_update(
        &self,
        context: &RequestContext<'_>,
        upsert: Upsert,
        preconditions: &Preconditions,
        transform: &mut dyn Transform,
        warnings: &Warnings,
    ) -> Result<Updated, Failure> {
        let strategy = &*self.resource.strategy;
        let may_create = match upsert {
            Upsert::Strategy => strategy.allow_create_on_update(),
            Upsert::Never => false,
            Upsert::Always => true,
        };
        if !may_create {
            return Err(Status::not_found(&self.group_resource, context.name).into());
        }
        if let Some(uid) = &preconditions.uid {
            let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: ");
            return Err(Status::conflict(&self.group_resource, context.name, &why).into());
        }
        let mut new = transform.apply(None).await?;
        self.drop_unkept(&mut new);
        if let Some(authorized) = strategy.authorize_write(context, &new, None) {
            authorized.await?;
        }
        if let Some(metadata) = new.at_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        fill_system_metadata(&mut new, context.now);
        let finish = strategy.begin_create(context, &mut new).await?;
        let result = async {
            self.before_create(context, &mut new, warnings)?;
            transform.validate(&new, None).await?;
            let stored = self.encode(&mut new).await?;
            if context.dry_run {
                return Ok(Updated { written: self.written(new, &stored, None).await?, created: true });
            }
            let key = self.key(context.namespace, context.name);
            let ttl = strategy.ttl(&new);
            self.announce(&stored, &new);
            match self.storage.create(&key, stored.bytes.clone(), ttl).await {
                Ok(revision) => {
                    Ok(Updated { written: self.written(new, &stored, Some(revision)).await?, created: true })
                }
                Err(WriteError::KeyExists) => {
                    Err(Failure::Conflict(self.storage.get(&key).await.map_err(errors::storage)?.kv))
                }
                Err(error) => Err(self.write_failure(error, context.name)),
            }
        }
        .await;
        finish_with(finish, result.is_ok(), context).await;
        result
    }

    fn before_update(
        &self,
        context: &RequestContext<'_>,
        strategy: &dyn Strategy,
        new: &mut Value,
        old: &Value,
        warnings: &Warnings,
    ) -> Result<(), Status> {
        match old.generation() {
            0 => drop(new.remove_at("metadata.generation")),
            generation => new.set_generation(generation),
        }
        strategy.prepare_for_update(context, new, old);
        if new.uid().is_empty() {
            new.set("metadata.uid", old.uid());
        }
        keep(new, old, "metadata.creationTimestamp");
        if old.is_terminating() {
            keep(new, old, "metadata.deletionTimestamp");
        }
        if new.at("metadata.deletionGracePeriodSeconds").is_none() {
            keep(new, old, "metadata.deletionGracePeriodSeconds");
        }
        new.remove_at("metadata.selfLink");
        let namespaced = self.resource.is_namespaced();
        let mut errors =
            validate_object_meta_accessor(new, namespaced, validate_path_segment_name, &metadata());
        errors.extend(validate_object_meta_accessor_update(new, old, &metadata()));
        let mut findings = Vec::new();
        errors.extend(strategy.check_update(context, new, old, &mut findings));
        warnings.extend(findings);
        if !errors.is_empty() {
            return Err(Status::invalid(&self.kind_of(new), new.name(), &errors));
        }
        warnings.extend(strategy.warnings_on_update(context, new, old));
        strategy.canonicalize(new);
        Ok(())
    }

    /// `resource` is what the refusal calls the object: by its resource on update, by its kind on delete.
    pub(super) fn check_preconditions(
        &self,
        wanted: &Preconditions,
        object: &Value,
        resource: &GroupResource,
    ) -> Result<(), Status> {
        if let Some(uid) = wanted.uid.as_deref().filter(|uid| *uid != object.uid()) {
            let why = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                object.uid()
            );
            return Err(self.invalid_object(object, resource, &why));
        }
        if let Some(version) =
            wanted.resource_version.as_deref().filter(|own| *own != object.resource_version())
        {
            let why = format!(
                "Precondition failed: ResourceVersion in precondition: {version}, ResourceVersion in object meta: {}",
                object.resource_version()
            );
            return Err(self.invalid_object(object, resource, &why));
        }
        Ok(())
    }

    /// 409 in the words of the reference's storage layer, whose code for this is 4.
    fn invalid_object(&self, object: &Value, resource: &GroupResource, why: &str) -> Status {
        let key = self.key(object.namespace(), object.name());
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: {why}",
            key.as_str()
        );
        Status::conflict(resource, object.name(), &why)
    }

    /// What the cache believes to be stored; when it has nothing, what is stored.
    pub(super) async fn guess(&self, namespace: &str, name: &str) -> Result<Option<Current>, Status> {
        let key = self.object_key(namespace, name)?;
        let (cached, _) =
            self.cacher.get(&key, pintle_cacher::Freshness::Any).await.map_err(errors::cacher)?;
        match cached {
            Some(cached) => {
                weigh(cached.json().len()).await;
                let stored = super::remove_revision(cached.json())
                    .ok_or_else(|| Status::internal_error("object without metadata"))?;
                let object = self.tree(cached.json()).await?;
                Ok(Some(Current {
                    object,
                    stored,
                    revision: cached.revision(),
                    confirmed: false,
                    stale: false,
                }))
            }
            None => self.read_current(namespace, name).await,
        }
    }

    /// What is stored.
    pub(super) async fn read_current(&self, namespace: &str, name: &str) -> Result<Option<Current>, Status> {
        let answer = self.storage.get(&self.key(namespace, name)).await.map_err(errors::storage)?;
        self.current_of(answer.kv).await
    }

    /// What the store has for a key, if it has anything.
    pub(super) async fn current_of(&self, kv: Option<KeyValue>) -> Result<Option<Current>, Status> {
        let Some(kv) = kv else { return Ok(None) };
        weigh(kv.value.len()).await;
        let stale = match &kv.state {
            ValueState::Current => false,
            ValueState::Stale => true,
            ValueState::Unreadable(error) => return Err(self.unreadable(&kv.key, kv.mod_revision, error)),
        };
        if let Err(error) = self.stored_tree(&kv.value) {
            let error = ReadError::Decode(TransformError(error.message));
            return Err(self.unreadable(&kv.key, kv.mod_revision, &error));
        }
        let mut object = self.tree(&kv.value).await?;
        object.set("metadata.resourceVersion", kv.mod_revision.to_string());
        Ok(Some(Current { object, stored: kv.value, revision: kv.mod_revision, confirmed: true, stale }))
    }

    pub(super) fn write_failure(&self, error: WriteError, name: &str) -> Failure {
        match error {
            WriteError::Conflict { current } => Failure::Conflict(current),
            error => Failure::Final(errors::write(error, &self.group_resource, name)),
        }
    }
}

/// Why one attempt to write did not succeed.
pub(super) enum Failure {
    /// The stored object is another one than thought.
    Conflict(Option<KeyValue>),
    /// The request is refused, if what it was judged by is what is stored.
    Final(Status),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        Failure::Final(status)
    }
}

/// What a writer is told whose object is not the newest.
pub const OPTIMISTIC_LOCK: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

fn invalid_resource_version(version: &str) -> Status {
    Status::unknown(format!(
        "strconv.ParseUint: parsing {}: invalid syntax",
        pintle_machinery::error_list::quote(version)
    ))
}

fn keep(new: &mut Value, old: &Value, path: &str) {
    match old.at(path) {
        Some(value) => new.set(path, value.clone()),
        None => drop(new.remove_at(path)),
    }
}

/// Whether an update takes the last thing away that kept a terminating object.
fn should_delete_during_update(strategy: &dyn Strategy, new: &Value, old: &Value) -> bool {
    let grace = old.i64_at("metadata.deletionGracePeriodSeconds").unwrap_or_default();
    old.is_terminating() && grace == 0 && new.finalizers().is_empty() && strategy.may_be_removed(new)
}
