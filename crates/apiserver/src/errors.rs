//! Maps the errors of inner layers to a [`Status`], in one place.

use pintle_cacher::CacherError;
use pintle_machinery::{GroupResource, Status};
use pintle_storage::{StorageError, WriteError};
use std::fmt::Display;

/// The message of the 409 for an outdated object.
pub(crate) const OPTIMISTIC_LOCK: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// An unexpected failure: 500 without a reason of its own.
pub fn internal(error: impl Display) -> Status {
    Status::internal_error(error)
}

/// The `Status` of a failed read of the store.
pub fn storage(error: StorageError) -> Status {
    match error {
        StorageError::Compacted { .. } => {
            Status::expired("The resourceVersion for the provided list is too old.")
        }
        StorageError::FutureRevision { requested, current } => {
            // No time was spent waiting for the revision.
            too_large_resource_version(requested.0, current.0, 0)
        }
        // The reference passes the store's own errors on.
        StorageError::TooLarge(message) | StorageError::Etcd(message) => Status::unknown(message),
        error => Status::internal_error(error),
    }
}

/// The `Status` of a failed write of an object.
pub fn write(error: WriteError, resource: &GroupResource, name: &str) -> Status {
    match error {
        WriteError::KeyExists => Status::already_exists(resource, name),
        WriteError::Conflict { .. } => Status::conflict(resource, name, OPTIMISTIC_LOCK),
        WriteError::Storage(error) => storage(error),
        error => Status::internal_error(error),
    }
}

/// The `Status` of a failed read of the cache, or of a watch that could not start.
pub fn cacher(error: CacherError) -> Status {
    match error {
        CacherError::Expired { .. } => Status::expired(error.to_string()),
        CacherError::TooLargeResourceVersion { requested, current } => {
            too_large_resource_version(requested.0, current.0, 1)
        }
        CacherError::NotReady => Status::too_many_requests(error.to_string(), 1),
        CacherError::Stopped => Status::service_unavailable(error.to_string()),
        CacherError::Storage(error) => storage(error),
        error => Status::internal_error(error),
    }
}

fn too_large_resource_version(requested: u64, current: u64, retry_after_seconds: u32) -> Status {
    let message = format!("Too large resource version: {requested}, current: {current}");
    Status::timeout(&message, retry_after_seconds).with_cause(
        "ResourceVersionTooLarge",
        "Too large resource version",
        "",
    )
}
