//! Creates objects.

use super::{Store, Written, versions};
use crate::{base::warning::Warnings, errors};
use jiff::Timestamp;
use pintle_cacher::Freshness;
use pintle_machinery::{
    FieldPath, Status, Value, ValueExt,
    generate_name::generate_name,
    meta::{self, ObjectMeta},
    validation::{validate_object_meta_accessor, validate_path_segment_name},
};
use pintle_registry::{BoxFuture, DeleteOptions, FinishFn, RequestContext};
use pintle_storage::{Key, Revision, StorageError, WriteError};

/// The number of names that are generated for an object at most.
const GENERATED_NAMES: usize = 8;

/// Validating admission: runs after the object has passed the strategy's validation.
pub trait Validation: Send + Sync {
    /// Decides whether the object may be stored; for a delete, `object` is null and [`Validation::validate_delete`] is
    /// called instead.
    fn validate<'a>(&'a self, object: &'a Value, old: Option<&'a Value>)
    -> BoxFuture<'a, Result<(), Status>>;

    /// Decides whether the object may be deleted. `options` have the grace period that the deletion has.
    fn validate_delete<'a>(
        &'a self,
        old: &'a Value,
        _options: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<(), Status>> {
        self.validate(&Value::Null, Some(old))
    }
}

/// Admits everything: for writes from inside the server.
#[derive(Debug, Clone, Copy)]
pub struct AcceptAll;

impl Validation for AcceptAll {
    fn validate<'a>(&'a self, _: &'a Value, _: Option<&'a Value>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Store {
    /// Stores a new object that passes the strategy's validation and `validate`.
    ///
    /// # Errors
    /// The `Status` for the client: 409 when the name is taken, 422 when validation fails, …
    pub async fn create(
        &self,
        context: &RequestContext<'_>,
        mut object: Value,
        validate: &dyn Validation,
        warnings: &Warnings,
    ) -> Result<Written, Status> {
        self.drop_unkept(&mut object);
        if let Some(authorized) = self.resource.strategy.authorize_write(context, &object, None) {
            authorized.await?;
        }
        fill_system_metadata(&mut object, context.now);
        if object.name().is_empty() && !object.str_at("metadata.generateName").is_empty() {
            let prefix = object.str_at("metadata.generateName");
            let name = self.free_name(context.namespace, || generate_name(prefix)).await;
            object.set("metadata.name", name);
        }
        let finish = self.resource.strategy.begin_create(context, &mut object).await?;
        let result = self.create_begun(context, object, validate, warnings).await;
        finish_with(finish, result.is_ok(), context).await;
        result
    }

    /// A generated name that no object has, as far as the cache knows, if one of the first few is free. Of the hundred
    /// thousand objects of one prefix that a job may make, hundreds would meet a name that is taken.
    pub(super) async fn free_name(&self, namespace: &str, generate: impl Fn() -> String) -> String {
        let mut name = generate();
        for _ in 1..GENERATED_NAMES {
            if let Ok(None) = self.find(&self.key(namespace, &name), Freshness::Any).await {
                break;
            }
            name = generate();
        }
        name
    }

    async fn create_begun(
        &self,
        context: &RequestContext<'_>,
        mut object: Value,
        validate: &dyn Validation,
        warnings: &Warnings,
    ) -> Result<Written, Status> {
        self.before_create(context, &mut object, warnings).await?;
        validate.validate(&object, None).await?;
        self.complete(&mut object);
        let name = object.name().to_owned();
        // As in the reference, a conflict of any name is that of a generated one if the object has a prefix for it.
        let generated = !object.str_at("metadata.generateName").is_empty();
        let key = self.key(object.namespace(), &name);
        let requested = requested_revision(&object);
        let given = if context.dry_run { object.resource_version().to_owned() } else { String::new() };
        drop_self_link(context, &mut object);
        let mut stored = self.encode(&mut object).await?;
        if context.dry_run {
            return match self.storage.get(&key).await.map_err(errors::storage)?.kv {
                Some(_) => Err(self.already_exists(context, &key, &name, generated).await),
                None => {
                    let mut written = self.shown(object, &stored, requested).await?;
                    if requested.map_or(String::new(), |revision| revision.to_string()) != given {
                        written.object.set("metadata.resourceVersion", given);
                        written.json = versions::encode(&written.object, &self.schema);
                    }
                    Ok(written)
                }
            };
        }
        // Only a real write rejects a resourceVersion, and only one that is a number.
        if requested.is_some_and(|revision| revision.0 != 0) {
            return Err(Status::unknown("resourceVersion should not be set on objects to be created"));
        }
        context.check_client()?;
        let ttl = self.resource.strategy.ttl(&object);
        let mut created = self.storage.create(&key, self.payload(&stored, &object), ttl).await;
        if is_too_large(&created) && drop_managed_fields(&mut object) {
            stored = self.encode(&mut object).await?;
            created = self.storage.create(&key, self.payload(&stored, &object), ttl).await;
        }
        match created {
            Ok(revision) => self.written(object, &stored, Some(revision)).await,
            Err(WriteError::KeyExists) => Err(self.already_exists(context, &key, &name, generated).await),
            Err(error) => Err(errors::write(error, &self.requested_resource(context), &name)),
        }
    }

    /// The 409; its message reports when the existing object is being deleted.
    async fn already_exists(
        &self,
        context: &RequestContext<'_>,
        key: &Key,
        name: &str,
        generated: bool,
    ) -> Status {
        let resource = self.requested_resource(context);
        let mut status = match generated {
            true => Status::generate_name_conflict(&resource, name),
            false => Status::already_exists(&resource, name),
        };
        let stored = self.storage.get(key).await.ok().and_then(|answer| answer.kv);
        let terminating =
            stored.and_then(|kv| self.stored_tree(&kv.value).ok()).is_some_and(|old| old.is_terminating());
        if terminating {
            status.message = format!("object is being deleted: {}", status.message);
        }
        status
    }

    /// Prepares and validates a new object: for creates, and for updates that create.
    ///
    /// # Errors
    /// The `Status` of the check that the object fails.
    pub(super) async fn before_create(
        &self,
        context: &RequestContext<'_>,
        object: &mut Value,
        warnings: &Warnings,
    ) -> Result<(), Status> {
        let strategy = &self.resource.strategy;
        self.resource.check_namespace(object, context.namespace)?;
        warnings.extend(strategy.preparation_warnings(object));
        strategy.prepare_for_create(context, object);
        let mut errors = strategy.validate(context, object);
        if let Some(review) = strategy.review(context, object, None, &mut errors) {
            review.await;
        }
        if errors.is_empty() {
            // These rules hold for every kind, whatever the strategy's name rules.
            let namespaced = self.resource.is_namespaced();
            errors =
                validate_object_meta_accessor(object, namespaced, validate_path_segment_name, &metadata());
        }
        if !errors.is_empty() {
            return Err(self.invalid(context, object, errors, |object| strategy.validate(context, object)));
        }
        warnings.extend(strategy.warnings_on_create(context, object));
        strategy.canonicalize(object);
        Ok(())
    }
}

/// Whether the store refused an object for its size.
pub(super) fn is_too_large(written: &Result<Revision, WriteError>) -> bool {
    matches!(written, Err(WriteError::Storage(StorageError::TooLarge(_))))
}

/// Drops the managed fields of an object that is too large for the store, to which they may contribute much; `false` when it
/// has none. As in the reference, the object is then stored without.
pub(super) fn drop_managed_fields(object: &mut Value) -> bool {
    object.remove_at("metadata.managedFields").is_some()
}

/// The `metadata` field path in messages.
pub(super) fn metadata() -> FieldPath {
    FieldPath::new("metadata")
}

/// The resourceVersion in a new object, if it is one. A dry run answers with the text, since only storing replaces it.
pub(super) fn requested_revision(object: &Value) -> Option<Revision> {
    object.resource_version().parse().ok().map(Revision)
}

/// Sets the metadata that the server alone decides.
pub(super) fn fill_system_metadata(object: &mut Value, now: Timestamp) {
    object.set("metadata.creationTimestamp", meta::format_time(now));
    object.set("metadata.uid", uuid::Uuid::new_v4().to_string());
}

/// Drops the `selfLink`, which only the storage does: the response to a dry run has it.
pub(super) fn drop_self_link(context: &RequestContext<'_>, object: &mut Value) {
    if !context.dry_run {
        object.remove_at("metadata.selfLink");
    }
}

pub(super) async fn finish_with(finish: Option<FinishFn>, stored: bool, context: &RequestContext<'_>) {
    if let Some(finish) = finish {
        finish(stored, context.registry).await;
    }
}
