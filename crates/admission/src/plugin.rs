//! What a plugin is.

use crate::AdmissionRequest;
use pintle_machinery::Status;
use pintle_registry::BoxFuture;
use std::future::ready;

/// Decides on writes.
pub trait AdmissionPlugin: Send + Sync {
    /// The name, as `--enable-admission-plugins` has it.
    fn name(&self) -> &'static str;

    /// Whether the plugin has anything to say of the request; if not, neither of the methods below is called. Must be
    /// cheap, and must not look into the object.
    fn handles(&self, request: &AdmissionRequest<'_>) -> bool;

    /// Changes the object, or refuses it. Called before the object is validated, and again when an update is tried
    /// again against a newer state.
    fn admit<'a>(&'a self, _request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(ready(Ok(())))
    }

    /// Refuses the object as it would be stored. Called after the object was found valid, and after all plugins
    /// changed what they change.
    fn validate<'a>(&'a self, _request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(ready(Ok(())))
    }
}
