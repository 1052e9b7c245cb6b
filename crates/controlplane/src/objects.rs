//! Creates and updates objects towards a desired state.

use pintle_machinery::{GroupResource, Status, StatusReason, Value, meta::ObjectMeta};
use pintle_registry::{Registry, WriteOptions};

/// The field manager of these writes.
const FIELD_MANAGER: &str = "kube-apiserver";

/// The number of attempts to create or update an object that is deleted concurrently.
const ATTEMPTS: usize = 3;

pub(crate) fn write_options() -> WriteOptions {
    WriteOptions { field_manager: FIELD_MANAGER.to_owned(), ..WriteOptions::default() }
}

/// A resource of the core group.
pub(crate) fn core(resource: &str) -> GroupResource {
    GroupResource::new("", resource)
}

/// Reconciles objects, and ignores the error that their resource is disabled (`--runtime-config`).
pub(crate) async fn unless_off(keep: impl Future<Output = Result<(), Status>>) -> Result<(), Status> {
    match keep.await {
        Err(status) if status == Status::no_such_resource() => Ok(()),
        result => result,
    }
}

/// Creates the object unless it exists; returns whether it did.
pub(crate) async fn create_if_missing(
    registry: &dyn Registry,
    resource: &GroupResource,
    namespace: &str,
    object: Value,
) -> Result<bool, Status> {
    match registry.get(resource, namespace, object.name()).await {
        Err(status) if status.reason == StatusReason::NotFound => {}
        result => return result.map(|_| false),
    }
    match registry.create(resource, namespace, object, write_options()).await {
        // Another server created it first.
        Err(status) if status.reason == StatusReason::AlreadyExists => Ok(false),
        result => result.map(|_| true),
    }
}

/// Creates or updates the object; nothing is written when `change` changes nothing.
pub(crate) async fn create_or_change(
    registry: &dyn Registry,
    resource: &GroupResource,
    namespace: &str,
    object: Value,
    change: impl Fn(&mut Value) + Send + Sync,
) -> Result<(), Status> {
    for _ in 0..ATTEMPTS {
        match registry.get(resource, namespace, object.name()).await {
            Ok(existing) if !changes(&change, &existing) => return Ok(()),
            Ok(_) => {}
            Err(status) if status.reason == StatusReason::NotFound => {
                match registry.create(resource, namespace, object.clone(), write_options()).await {
                    // Another server created it first.
                    Err(status) if status.reason == StatusReason::AlreadyExists => {}
                    result => return result.map(drop),
                }
            }
            Err(status) => return Err(status),
        }
        let change = |mut object: Value| {
            change(&mut object);
            Ok(object)
        };
        match registry.update(resource, namespace, object.name(), Box::new(change), write_options()).await {
            // The object was deleted concurrently.
            Err(status) if status.reason == StatusReason::NotFound => {}
            result => return result.map(drop),
        }
    }
    Err(Status::conflict(resource, object.name(), "the object was deleted whenever it was to be changed"))
}

/// Whether the change makes another object of this one. To find out costs much less than an update without effect.
pub(crate) fn changes(change: impl Fn(&mut Value), object: &Value) -> bool {
    let mut changed = object.clone();
    change(&mut changed);
    changed != *object
}
