//! How objects are brought to the state they should have.

use pintle_machinery::{GroupResource, Status, StatusReason, Value, meta::ObjectMeta};
use pintle_registry::{Registry, WriteOptions};

/// Whose writes these are, in `managedFields`.
const FIELD_MANAGER: &str = "kube-apiserver";

/// How often an object is made again that somebody deletes.
const ATTEMPTS: usize = 3;

pub(crate) fn write_options() -> WriteOptions {
    WriteOptions { field_manager: FIELD_MANAGER.to_owned(), ..WriteOptions::default() }
}

/// A resource of the core group.
pub(crate) fn core(resource: &str) -> GroupResource {
    GroupResource::new("", resource)
}

/// Keeps objects, where it is no failure that a resource they need is switched off (`--runtime-config`): such objects are
/// not there.
pub(crate) async fn unless_off(keep: impl Future<Output = Result<(), Status>>) -> Result<(), Status> {
    match keep.await {
        Err(status) if status == Status::no_such_resource() => Ok(()),
        result => result,
    }
}

/// Creates the object unless one of its name is there, and says whether it did.
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
        // Another server was faster.
        Err(status) if status.reason == StatusReason::AlreadyExists => Ok(false),
        result => result.map(|_| true),
    }
}

/// Creates the object, or changes what is there; nothing is written when `change` changes nothing.
pub(crate) async fn create_or_change(
    registry: &dyn Registry,
    resource: &GroupResource,
    namespace: &str,
    object: Value,
    change: impl Fn(&mut Value) + Send + Sync,
) -> Result<(), Status> {
    let name = object.name().to_owned();
    for _ in 0..ATTEMPTS {
        if create_if_missing(registry, resource, namespace, object.clone()).await? {
            return Ok(());
        }
        let change = |mut object: Value| {
            change(&mut object);
            Ok(object)
        };
        match registry.update(resource, namespace, &name, Box::new(change), write_options()).await {
            // Somebody has deleted it in between.
            Err(status) if status.reason == StatusReason::NotFound => {}
            result => return result.map(drop),
        }
    }
    Err(Status::conflict(resource, &name, "the object was deleted whenever it was to be changed"))
}
