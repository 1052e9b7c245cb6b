//! Updates objects: guaranteed update.
//!
//! The first attempt takes the cached object for the stored one. On a conflict, the change is made again on the object
//! that the store has. A refusal that is based on the cached object is returned only after the store has confirmed that
//! object.

use super::{
    Store, Written,
    create::{
        drop_managed_fields, drop_self_link, fill_system_metadata, finish_with, is_too_large, metadata,
        requested_revision,
    },
};
use crate::{base::warning::Warnings, errors, metrics::times_compared};
use bytes::Bytes;
use pintle_machinery::{
    FieldError, FieldPath, GroupKind, Status, Value, ValueExt,
    managed_fields::keep_times,
    meta::ObjectMeta,
    options::{Preconditions, parse_written_resource_version},
    validation::{
        validate_object_meta_accessor, validate_object_meta_accessor_update, validate_path_segment_name,
    },
};
use pintle_offload::weigh;
use pintle_registry::{BoxFuture, RequestContext, Strategy, keep};
use pintle_storage::{KeyValue, ReadError, Revision, TransformError, ValueState, WriteError};
use std::time::Instant;

/// Computes the new object from the old one. Called again after a conflict with another writer.
pub trait Transform: Send {
    /// The new object; `old` is `None` for a PUT that creates the object.
    fn apply<'a>(&'a mut self, old: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>>;

    /// Whether the object is stored without managed fields when it is too large with them. Not for an apply, whose result they
    /// are.
    fn may_drop_managed_fields(&self) -> bool {
        false
    }

    /// Runs validating admission on the new object.
    fn validate<'a>(
        &'a mut self,
        _new: &'a Value,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The outcome of an update.
pub struct Updated {
    /// The object after the update.
    pub written: Written,
    /// Whether the update created the object.
    pub created: bool,
}

/// How an update treats a missing object, and a PUT without resourceVersion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upsert {
    /// As the strategy decides.
    Strategy,
    /// The object must exist.
    Never,
    /// The object is created, whatever the strategy decides.
    Always,
}

/// The stored object, or the cached guess of it.
pub(super) struct Current {
    pub(super) object: Value,
    pub(super) stored: Bytes,
    pub(super) revision: Revision,
    /// Whether the object was read from the store itself.
    pub(super) confirmed: bool,
    /// Whether writing the object again would store other bytes. Known only when confirmed.
    pub(super) stale: bool,
}

impl Store {
    /// Updates the object of `context.name` with `transform` under a strategy (the resource's own, or a subresource's).
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
            // A dry run makes no write that would detect a wrong guess.
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
                Err(Failure::Storage(status)) => return Err(status),
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
        if let Some(unmet) = preconditions.unmet_by(old) {
            return Err(self.invalid_object(context, &unmet.of_change()).into());
        }
        let mut new = transform.apply(Some(old)).await?;
        self.drop_unkept(&mut new);
        if let Some(authorized) = strategy.authorize_write(context, &new, Some(old)) {
            authorized.await?;
        }
        self.resource.check_namespace(&mut new, context.namespace)?;
        let version = parse_written_resource_version(new.resource_version())?;
        if version == 0 {
            if !strategy.allow_unconditional_update() {
                let path = FieldPath::new("metadata").child("resourceVersion");
                let error = FieldError::invalid(&path, 0, "must be specified for an update");
                let resource = &self.group_resource;
                let kind = GroupKind::new(resource.group.clone(), resource.resource.clone());
                return Err(Status::invalid(&kind, context.name, &vec![error]).into());
            }
            new.set("metadata.resourceVersion", old.resource_version());
        } else if old.resource_version().parse() != Ok(version) {
            return Err(Status::conflict(
                &self.requested_resource(context),
                context.name,
                errors::OPTIMISTIC_LOCK,
            )
            .into());
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
        self.before_update(context, strategy, &mut new, old, warnings).await?;
        let started = Instant::now();
        let compared = keep_times(old, &mut new);
        times_compared(compared, started.elapsed());
        transform.validate(&new, Some(old)).await?;
        self.complete(&mut new);
        let ends = should_delete_during_update(strategy, &new, old);
        if !ends {
            drop_self_link(context, &mut new);
        }
        let mut stored = self.encode(&mut new).await?;
        let updated = |written| Updated { written, created: false };
        if !context.dry_run {
            context.check_client()?;
        }
        if ends && !context.dry_run {
            return match self
                .storage
                .delete_existing(
                    &self.key(context.namespace, context.name),
                    current.revision,
                    current.stored.clone().into(),
                )
                .await
            {
                Ok(deleted) => {
                    self.wait_until_in_force(deleted).await;
                    self.resource.strategy.after_delete(context, &new).await;
                    // The client has asked for an update: the response is its object, which was never stored and has the
                    // revision that it was based on.
                    let shown = self.shown(new, &stored, Some(current.revision)).await;
                    Ok(updated(shown.map_err(Failure::Storage)?))
                }
                Err(error) => Err(self.write_failure(error, context)),
            };
        }
        // A stale object is written even without a change, in its present stored form.
        if stored.bytes == current.stored && !current.stale {
            if current.confirmed || context.dry_run {
                return Ok(updated(self.written(new, &stored, Some(current.revision)).await?));
            }
            // The guess may be outdated, and the change empty only by accident.
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
        let mut result = self.storage.update(&key, self.payload(&stored, &new), current.revision, ttl).await;
        if is_too_large(&result) && transform.may_drop_managed_fields() && drop_managed_fields(&mut new) {
            stored = self.encode(&mut new).await?;
            result = self.storage.update(&key, self.payload(&stored, &new), current.revision, ttl).await;
        }
        match result {
            Ok(revision) => {
                let written = self.written(new, &stored, Some(revision)).await;
                Ok(updated(written.map_err(Failure::Storage)?))
            }
            Err(error) => Err(self.write_failure(error, context)),
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
            return Err(Status::not_found(&self.requested_resource(context), context.name).into());
        }
        let wanted = Preconditions { uid: preconditions.uid.clone(), resource_version: None };
        if let Some(unmet) = wanted.unmet_by(&Value::Null) {
            return Err(self.invalid_object(context, &unmet.of_change()).into());
        }
        let mut new = transform.apply(None).await?;
        self.drop_unkept(&mut new);
        if let Some(authorized) = strategy.authorize_write(context, &new, None) {
            authorized.await?;
        }
        parse_written_resource_version(new.resource_version())?;
        fill_system_metadata(&mut new, context.now);
        let finish = strategy.begin_create(context, &mut new).await?;
        let result = async {
            self.before_create(context, &mut new, warnings).await?;
            transform.validate(&new, None).await?;
            self.complete(&mut new);
            let requested = requested_revision(&new);
            drop_self_link(context, &mut new);
            let mut stored = self.encode(&mut new).await?;
            if context.dry_run {
                return Ok(Updated { written: self.shown(new, &stored, requested).await?, created: true });
            }
            context.check_client()?;
            let key = self.key(context.namespace, context.name);
            let ttl = strategy.ttl(&new);
            let mut created = self.storage.create(&key, self.payload(&stored, &new), ttl).await;
            if is_too_large(&created) && transform.may_drop_managed_fields() && drop_managed_fields(&mut new)
            {
                stored = self.encode(&mut new).await?;
                created = self.storage.create(&key, self.payload(&stored, &new), ttl).await;
            }
            match created {
                Ok(revision) => {
                    let written = self.written(new, &stored, Some(revision)).await;
                    Ok(Updated { written: written.map_err(Failure::Storage)?, created: true })
                }
                Err(WriteError::KeyExists) => {
                    Err(Failure::Conflict(self.storage.get(&key).await.map_err(errors::storage)?.kv))
                }
                Err(error) => Err(self.write_failure(error, context)),
            }
        }
        .await;
        finish_with(finish, result.is_ok(), context).await;
        result
    }

    async fn before_update(
        &self,
        context: &RequestContext<'_>,
        strategy: &dyn Strategy,
        new: &mut Value,
        old: &Value,
        warnings: &Warnings,
    ) -> Result<(), Status> {
        if self.resource.model.keeps_claimed_kind() && new.str_at("apiVersion").is_empty() {
            // A patch has removed it.
            return Err(Status::internal_error(
                "Object 'apiVersion' is missing in 'object has no apiVersion field'",
            ));
        }
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
        let namespaced = self.resource.is_namespaced();
        let validate_metadata = |new: &Value| {
            let mut errors =
                validate_object_meta_accessor(new, namespaced, validate_path_segment_name, &metadata());
            errors.extend(validate_object_meta_accessor_update(new, old, &metadata()));
            errors
        };
        let mut errors = validate_metadata(new);
        let mut findings = Vec::new();
        let mut found = strategy.check_update(context, new, old, &mut findings);
        if let Some(review) = strategy.review(context, new, Some(old), &mut found) {
            review.await;
        }
        errors.extend(found);
        warnings.extend(findings);
        if !errors.is_empty() {
            return Err(self.invalid(context, new, errors, |new| {
                let mut errors = validate_metadata(new);
                errors.extend(strategy.check_update(context, new, old, &mut Vec::new()));
                errors
            }));
        }
        warnings.extend(strategy.warnings_on_update(context, new, old));
        strategy.canonicalize(new);
        Ok(())
    }

    /// The 409 of kube-apiserver's storage layer, which has code 4 there. A dry run does not reach the layer that knows the
    /// prefix of all keys.
    fn invalid_object(&self, context: &RequestContext<'_>, why: &str) -> Status {
        let key = self.key(context.namespace, context.name);
        let path = format!("/{}/", self.resource.storage.path);
        let from = if context.dry_run { key.as_str().find(&path).unwrap_or_default() } else { 0 };
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: {why}",
            key.as_str().get(from..).unwrap_or_default()
        );
        Status::conflict(&self.requested_resource(context), context.name, &why)
    }

    /// The cached object as a guess of the stored one; without a cached object, the stored one.
    ///
    /// # Errors
    /// 400 for an invalid name, 500 when the object cannot be decoded, and the errors of cache, store and conversion.
    pub(super) async fn guess(&self, namespace: &str, name: &str) -> Result<Option<Current>, Status> {
        let key = self.object_key(namespace, name)?;
        let (cached, _) =
            self.cacher.get(&key, pintle_cacher::Freshness::Any).await.map_err(errors::cacher)?;
        match cached {
            Some(cached) => {
                weigh(cached.size()).await;
                let json = cached.json();
                let stored = super::remove_revision(&json)
                    .ok_or_else(|| Status::internal_error("object without metadata"))?;
                let object = self.tree(&json).await?;
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

    /// Reads the stored object.
    ///
    /// # Errors
    /// As [`Store::current_of`], and the errors of the store.
    pub(super) async fn read_current(&self, namespace: &str, name: &str) -> Result<Option<Current>, Status> {
        let answer = self.storage.get(&self.key(namespace, name)).await.map_err(errors::storage)?;
        self.current_of(answer.kv).await
    }

    /// Decodes the store's value of a key; `None` when there is none.
    ///
    /// # Errors
    /// 500 when the object cannot be decoded, and the errors of its conversion.
    pub(super) async fn current_of(&self, kv: Option<KeyValue>) -> Result<Option<Current>, Status> {
        let Some(kv) = kv else { return Ok(None) };
        weigh(kv.value.len()).await;
        let stale = match &kv.state {
            ValueState::Current => false,
            ValueState::Stale => true,
            ValueState::Unreadable(error) => return Err(self.unreadable(&kv.key, kv.mod_revision, error)),
        };
        let mut object = match self.tree(&kv.value).await {
            Ok(object) => object,
            Err(status) => {
                // The conversion failed, unless it is the object that cannot be decoded.
                self.stored_tree(&kv.value).map_err(|error| {
                    let error = ReadError::Decode(TransformError(error.message));
                    self.unreadable(&kv.key, kv.mod_revision, &error)
                })?;
                return Err(status);
            }
        };
        object.set("metadata.resourceVersion", kv.mod_revision.to_string());
        Ok(Some(Current {
            object,
            stored: kv.value.bytes,
            revision: kv.mod_revision,
            confirmed: true,
            stale,
        }))
    }

    pub(super) fn write_failure(&self, error: WriteError, context: &RequestContext<'_>) -> Failure {
        match error {
            WriteError::Conflict { current } => Failure::Conflict(current),
            error => Failure::Storage(errors::write(error, &self.requested_resource(context), context.name)),
        }
    }
}

/// The reason why an attempt to write failed.
pub(super) enum Failure {
    /// The stored object differs from the expected one.
    Conflict(Option<KeyValue>),
    /// The request is refused, provided that it was checked against the stored object.
    Final(Status),
    /// The store did not confirm the write, which may have happened, or the response cannot be made of what was written. Another
    /// attempt would find its own effect, and answer as if another client had made it, or make it twice.
    Storage(Status),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        Failure::Final(status)
    }
}

/// Whether an update removes the last reason to keep a terminating object.
fn should_delete_during_update(strategy: &dyn Strategy, new: &Value, old: &Value) -> bool {
    let grace = old.i64_at("metadata.deletionGracePeriodSeconds").unwrap_or_default();
    old.is_terminating() && grace == 0 && new.finalizers().is_empty() && strategy.may_be_removed(new)
}
