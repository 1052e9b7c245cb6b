//! Deletes objects: at once, gracefully, or after their finalizers.
//! <https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/>

use super::{
    Store, Validation, splice_revision,
    update::{Current, Failure},
};
use crate::errors;
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use pintle_machinery::{
    FieldError, FieldPath, GroupKind, GroupResource, Status, StatusDetails, StatusReason, Value, ValueExt,
    meta::{self, ObjectMeta},
    options::IGNORE_STORE_READ_ERROR,
};
use pintle_registry::{
    DeleteOptions, FirstPropagation, GarbageCollectionPolicy, PropagationPolicy, RequestContext,
};
use pintle_storage::{Revision, WriteError};

/// The outcome of a delete.
pub struct Deleted {
    /// The last state of the object, or its state while it terminates.
    pub object: Value,
    /// The final JSON of the object in the storage version, where the delete has encoded it.
    pub json: Option<Bytes>,
    /// Whether the object is removed from storage.
    pub gone: bool,
    /// The body of the response.
    pub answer: DeleteAnswer,
}

/// The body of the response to a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteAnswer {
    /// The object of the outcome.
    Object,
    /// An object without any content. In the reference that is the target of a read that a dry run leaves out: an update
    /// before the removal would have filled it.
    EmptyObject,
    /// A success `Status`.
    Status,
}

impl Deleted {
    /// The success `Status` of a delete of this resource's object.
    pub fn status(&self, resource: &GroupResource) -> Status {
        Status::success(Some(StatusDetails {
            name: self.object.name().to_owned(),
            group: resource.group.clone(),
            kind: resource.resource.clone(),
            uid: self.object.uid().to_owned(),
            ..StatusDetails::default()
        }))
    }
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

impl Store {
    /// Deletes the object of `context.name`.
    ///
    /// # Errors
    /// The `Status` for the client.
    pub async fn delete(
        &self,
        context: &RequestContext<'_>,
        options: &DeleteOptions,
        validate: &dyn Validation,
    ) -> Result<Deleted, Status> {
        let missing = || Status::not_found(&self.requested_resource(context), context.name);
        let mut current = self.guess(context.namespace, context.name).await?.ok_or_else(missing)?;
        let mut ending = None;
        loop {
            let found = match self.try_delete(context, options, validate, &mut current, &mut ending).await {
                Ok((deleted, written)) if written || current.confirmed => return Ok(deleted),
                // The cached object needed no write, but another server may have changed the stored one.
                Ok((deleted, _)) => {
                    let found = self.read_current(context.namespace, context.name).await?;
                    if found.as_ref().is_some_and(|found| found.revision == current.revision) {
                        return Ok(deleted);
                    }
                    found
                }
                Err(Failure::Conflict(kv)) => self.current_of(kv).await?,
                Err(Failure::Storage(status)) => return Err(status),
                Err(Failure::Final(status)) if current.confirmed => return Err(status),
                Err(Failure::Final(status)) => {
                    let found = self.read_current(context.namespace, context.name).await?;
                    if found.as_ref().is_some_and(|found| found.revision == current.revision) {
                        return Err(status);
                    }
                    found
                }
            };
            current = match found {
                Some(found) => found,
                // Without a grace period, a concurrent update of the object may remove it first. The request has
                // succeeded then.
                None => {
                    return ending
                        .map(|ended| self.deleted(ended, None, true, DeleteAnswer::Status))
                        .ok_or_else(missing);
                }
            };
        }
    }

    /// Deletes an object that cannot be read, without checking preconditions, finalizers or admission, which need the
    /// object.
    ///
    /// # Errors
    /// 422 for an object that can be read or does not exist.
    pub async fn delete_unreadable(&self, namespace: &str, name: &str) -> Result<(), Status> {
        let key = self.object_key(namespace, name)?;
        let mut found = self.storage.get(&key).await.map_err(errors::storage)?.kv;
        loop {
            let is_readable = self.current_of(found.clone()).await.is_ok();
            let Some(kv) = found.filter(|_| !is_readable) else {
                let path = FieldPath::new(IGNORE_STORE_READ_ERROR);
                let detail =
                    "is exclusively used to delete corrupt object(s), try again by removing this option";
                let error = FieldError::invalid(&path, true, detail);
                let resource = &self.group_resource;
                let kind = GroupKind::new(resource.group.clone(), resource.resource.clone());
                return Err(Status::invalid(&kind, name, &vec![error]));
            };
            tracing::warn!(key = %kv.key, revision = %kv.mod_revision, "an unreadable object is deleted as asked");
            match self.storage.delete(&key, kv.mod_revision).await {
                Ok(deleted) => {
                    self.wait_until_in_force(deleted).await;
                    return Ok(());
                }
                Err(WriteError::Conflict { current: None }) => return Ok(()),
                Err(WriteError::Conflict { current }) => found = current,
                Err(error) => return Err(errors::write(error, &self.group_resource, name)),
            }
        }
    }

    /// The outcome with an object that has the resourceVersion of the response, and with its stored form if this request
    /// has encoded it.
    fn deleted(&self, object: Value, stored: Option<&Bytes>, gone: bool, answer: DeleteAnswer) -> Deleted {
        let answer = match answer {
            DeleteAnswer::Status if self.resource.strategy.returns_deleted_object() => DeleteAnswer::Object,
            answer => answer,
        };
        let revision = object.resource_version().parse().ok().map(Revision);
        let json = stored.zip(revision).and_then(|(stored, revision)| splice_revision(stored, revision));
        Deleted { object, json, gone, answer }
    }

    /// The outcome, and whether anything was written. Takes the object out of `current`. When the removal fails, `ending`
    /// is the terminating object as this request has stored it before, if it has.
    async fn try_delete(
        &self,
        context: &RequestContext<'_>,
        options: &DeleteOptions,
        validate: &dyn Validation,
        current: &mut Current,
        ending: &mut Option<Value>,
    ) -> Result<(Deleted, bool), Failure> {
        self.check_delete_preconditions(options, &current.object)?;
        let strategy = &self.resource.strategy;
        let mut options = options.clone();
        if strategy.begins_deletion_with_status() {
            // As admission sees it, the client means this object and no later one of the name.
            options.preconditions.uid.get_or_insert_with(|| current.object.uid().to_owned());
        }
        let grace = self.graceful_deletion(context, &current.object, &mut options);
        // A deletion that is under way and does not become shorter is no request to admission.
        let is_under_way = current.object.is_terminating() && !strategy.may_be_removed(&current.object);
        if grace == Grace::Pending || is_under_way {
            let object = std::mem::take(&mut current.object);
            return Ok((self.deleted(object, None, false, DeleteAnswer::Object), false));
        }
        validate.validate_delete(&current.object, &options).await?;
        let finalizers = current.object.at("metadata.finalizers").cloned();
        let mut object = std::mem::take(&mut current.object);
        if let Grace::Begun { seconds, ends } = grace {
            begin_graceful_deletion(&mut object, seconds, ends);
        }
        // A deletion that begins with the status ends with another request or an update, even if nothing is left to do.
        let only_begins = strategy.begins_deletion_with_status() && !object.is_terminating();
        let first = only_begins.then(|| strategy.first_propagation());
        if first != Some(FirstPropagation::Ignored) {
            self.set_garbage_collection_finalizers(&mut object, &options, first);
        }
        // An object with finalizers, or with a grace period, is updated first and asked about once more when it is
        // removed.
        let is_updated_first = matches!(grace, Grace::Begun { .. })
            || finalizers.is_some()
            || object.at("metadata.finalizers").is_some();
        let keeps = only_begins || !object.finalizers().is_empty() || !strategy.may_be_removed(&object);
        if only_begins {
            // Neither the generation nor a grace period tells of it.
            object.set("metadata.deletionTimestamp", meta::format_time(context.now));
            strategy.prepare_for_deletion(&mut object);
        } else if grace == Grace::No && keeps {
            mark_as_deleting(&mut object, context.now);
        }
        let waits = keeps || matches!(grace, Grace::Begun { seconds, .. } if seconds > 0);
        let key = self.key(context.namespace, context.name);
        let (mut revision, mut existing) = (current.revision, current.stored.clone());
        let mut shown = None;
        if waits || matches!(grace, Grace::Begun { .. }) {
            let stored = self.encode(&mut object).await?;
            if stored.bytes != current.stored && !context.dry_run {
                context.check_client()?;
                revision = self
                    .storage
                    .update(&key, self.payload(&stored, &object), current.revision, None)
                    .await
                    .map_err(|error| match self.write_failure(error, context) {
                        // The change of the status wraps the store's own errors, which other writes pass on.
                        Failure::Storage(status) if only_begins && status.reason == StatusReason::Unknown => {
                            Failure::Storage(errors::internal(status.message))
                        }
                        failure => failure,
                    })?;
                current.confirmed = true;
                existing = stored.bytes.clone();
            }
            object.set("metadata.resourceVersion", revision.to_string());
            // Otherwise clients see other bytes than the object's own.
            shown = Some(stored.bytes).filter(|_| stored.shown.is_none());
        } else if let Some(finalizers) = finalizers {
            // The removal writes nothing before it.
            object.set("metadata.finalizers", finalizers);
        }
        if waits {
            self.wait_until_in_force(revision).await;
            return Ok((
                self.deleted(object, shown.as_ref(), false, DeleteAnswer::Object),
                revision != current.revision,
            ));
        }
        if !context.dry_run {
            if is_updated_first {
                validate.validate_delete(&object, &options).await?;
            }
            if revision == current.revision {
                // A deletion that this request has begun is finished.
                context.check_client()?;
            }
            match self.storage.delete_existing(&key, revision, existing.into()).await {
                Ok(deleted) => {
                    // The response object has the revision of the deletion, as watch events have it.
                    object.set("metadata.resourceVersion", deleted.to_string());
                    self.wait_until_in_force(deleted).await;
                    strategy.after_delete(context, &object).await;
                }
                Err(error) => {
                    if revision != current.revision {
                        *ending = Some(object);
                    }
                    return Err(self.write_failure(error, context));
                }
            }
        }
        let answer = match context.dry_run && is_updated_first && !matches!(grace, Grace::Begun { .. }) {
            true => DeleteAnswer::EmptyObject,
            false => DeleteAnswer::Status,
        };
        Ok((self.deleted(object, shown.as_ref(), true, answer), !context.dry_run))
    }

    /// Checks the preconditions of a delete, which kube-apiserver checks elsewhere than those of an update, with other
    /// messages.
    fn check_delete_preconditions(&self, options: &DeleteOptions, old: &Value) -> Result<(), Status> {
        let Some(unmet) = options.preconditions.unmet_by(old) else { return Ok(()) };
        Err(match self.resource().strategy.begins_deletion_with_status() {
            true => Status::conflict(&self.resource().group_resource(), old.name(), &unmet.of_change()),
            false => {
                let kind = GroupResource::new(self.group_kind.group.clone(), self.group_kind.kind.clone());
                Status::conflict(&kind, old.name(), &unmet.of_delete())
            }
        })
    }

    /// Decides about the graceful deletion of a kind that supports it, and sets the grace period in the options.
    fn graceful_deletion(
        &self,
        context: &RequestContext<'_>,
        object: &Value,
        options: &mut DeleteOptions,
    ) -> Grace {
        // A negative grace period counts as one second.
        let wanted = options.grace_period_seconds.map(|wanted| if wanted < 0 { 1 } else { wanted });
        options.grace_period_seconds = wanted;
        let Some(seconds) = self.resource.strategy.graceful_deletion(context, object, wanted) else {
            return Grace::No;
        };
        if let Some(ends) = meta::parse_time(object.str_at("metadata.deletionTimestamp")) {
            let left = object.i64_at("metadata.deletionGracePeriodSeconds").unwrap_or_default();
            if left == 0 {
                return Grace::No;
            }
            let Some(wanted) = wanted.filter(|wanted| *wanted < left) else {
                return Grace::Pending;
            };
            let earlier = SignedDuration::from_secs(wanted.saturating_sub(left));
            let ends = ends.saturating_add(earlier).unwrap_or(ends);
            // A period that is over already ends now, and the kubelet still gets a second for it.
            return match ends < context.now {
                true => Grace::Begun { seconds: wanted.min(1), ends: context.now },
                false => Grace::Begun { seconds: wanted, ends },
            };
        }
        options.grace_period_seconds = Some(seconds);
        let ends = context.now.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(context.now);
        Grace::Begun { seconds, ends }
    }

    /// Sets the finalizers by which the garbage collector carries out the propagation policy.
    fn set_garbage_collection_finalizers(
        &self,
        object: &mut Value,
        options: &DeleteOptions,
        first: Option<FirstPropagation>,
    ) {
        if !self.garbage_collection {
            return;
        }
        let has = |name: &str| object.finalizers().contains(&name);
        let policy = self.resource.strategy.garbage_collection_policy();
        let (orphan, foreground) = match (options.orphan_dependents, options.propagation_policy) {
            _ if policy == GarbageCollectionPolicy::Unsupported => (false, false),
            (Some(orphan), _) => (orphan, !orphan && first.is_some()),
            (None, Some(PropagationPolicy::Orphan)) => (true, false),
            (None, Some(PropagationPolicy::Foreground)) => (false, true),
            (None, Some(PropagationPolicy::Background)) => (false, false),
            (None, None) if has(ORPHAN) => (true, false),
            (None, None) if has(FOREGROUND) => (false, true),
            (None, None) => (policy == GarbageCollectionPolicy::OrphanDependents, false),
        };
        if has(ORPHAN) == orphan && has(FOREGROUND) == foreground {
            return;
        }
        let mut finalizers: Vec<Value> = object
            .items_at("metadata.finalizers")
            .iter()
            .filter(|name| !matches!(name.as_str(), Some(ORPHAN | FOREGROUND)))
            .cloned()
            .collect();
        for (wanted, name) in [(orphan, ORPHAN), (foreground, FOREGROUND)] {
            if wanted {
                finalizers.push(name.into());
            }
        }
        match finalizers.is_empty() {
            true => drop(object.remove_at("metadata.finalizers")),
            false => object.set("metadata.finalizers", finalizers),
        }
    }
}

/// The state of graceful deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grace {
    /// The kind is deleted immediately, or its grace period is over.
    No,
    /// Graceful deletion starts, or is shortened.
    Begun {
        /// The grace period in seconds.
        seconds: i64,
        /// The end of the grace period.
        ends: Timestamp,
    },
    /// Graceful deletion has started before and does not change.
    Pending,
}

fn begin_graceful_deletion(object: &mut Value, seconds: i64, ends: Timestamp) {
    if !object.is_terminating() {
        bump_generation(object);
    }
    object.set("metadata.deletionTimestamp", meta::format_time(ends));
    object.set("metadata.deletionGracePeriodSeconds", seconds);
}

fn mark_as_deleting(object: &mut Value, now: Timestamp) {
    let ends = meta::parse_time(object.str_at("metadata.deletionTimestamp"));
    if ends.is_none() {
        bump_generation(object);
    }
    // Only a grace period has its end in the future: a time without one is that of a request which began after this one.
    let has_grace = object.i64_at("metadata.deletionGracePeriodSeconds") != Some(0);
    if ends.is_none_or(|ends| ends > now && has_grace) {
        object.set("metadata.deletionTimestamp", meta::format_time(now));
    }
    object.set("metadata.deletionGracePeriodSeconds", 0);
}

fn bump_generation(object: &mut Value) {
    match object.generation() {
        0 => {}
        // A client may have set any value, and an object with a negative one could not be updated any more.
        generation => object.set_generation(generation.saturating_add(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn only_a_grace_period_is_shortened() {
        let now = Timestamp::from_second(100).unwrap();
        let time = |second| meta::format_time(Timestamp::from_second(second).unwrap());
        // The end of the deletion that is under way, its grace period, and the end after another request.
        let rows = [(130, 30, 100), (90, 0, 90), (101, 0, 101)];
        for (ends, seconds, expected) in rows {
            let mut object = json!({"metadata": {
                "generation": 2, "deletionTimestamp": time(ends), "deletionGracePeriodSeconds": seconds,
            }});
            mark_as_deleting(&mut object, now);
            assert_eq!(
                object["metadata"],
                json!({"generation": 2, "deletionTimestamp": time(expected), "deletionGracePeriodSeconds": 0})
            );
        }
    }
}
