//! Defines [`AdmissionPlugin`].

use crate::AdmissionRequest;
use pintle_machinery::Status;
use pintle_registry::BoxFuture;
use prometheus::core::Collector;
use std::future::ready;

/// Admits or refuses writes, and may change their objects.
pub trait AdmissionPlugin: Send + Sync {
    /// The name, as in `--enable-admission-plugins`.
    fn name(&self) -> &'static str;

    /// Whether the plugin applies to the request; if not, neither of the methods below is called. Must be cheap, and
    /// must not read the object.
    fn handles(&self, request: &AdmissionRequest<'_>) -> bool;

    /// The plugin's own metrics, for registration.
    fn collectors(&self) -> Vec<Box<dyn Collector>> {
        Vec::new()
    }

    /// Changes the object, or refuses it. Called before the object is validated, and again in the second round of
    /// admission or when an update is retried on a newer state, so that it must find its own changes in order.
    fn admit<'a>(&'a self, _request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(ready(Ok(())))
    }

    /// Admits or refuses the object in its final form. Called after validation, and after all plugins have made their
    /// changes.
    fn validate<'a>(&'a self, _request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(ready(Ok(())))
    }
}
