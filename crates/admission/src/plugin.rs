//! Defines [`AdmissionPlugin`].

use crate::AdmissionRequest;
use pintle_machinery::Status;
use pintle_registry::BoxFuture;
use prometheus::core::Collector;
use std::future::ready;

/// A step of admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Plugins may change the object.
    Admit,
    /// Plugins may refuse the object.
    Validate,
}

/// The steps of admission that call a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steps {
    /// [`AdmissionPlugin::admit`] alone.
    Admit,
    /// [`AdmissionPlugin::validate`] alone.
    Validate,
    /// Both.
    Both,
}

impl Steps {
    /// Whether the step is one of these.
    pub fn contain(self, step: Step) -> bool {
        match self {
            Steps::Admit => step == Step::Admit,
            Steps::Validate => step == Step::Validate,
            Steps::Both => true,
        }
    }
}

/// Admits or refuses writes, and may change their objects.
pub trait AdmissionPlugin: Send + Sync {
    /// The name, as in `--enable-admission-plugins`.
    fn name(&self) -> &'static str;

    /// The steps that call the plugin: those whose methods it has. The others are not measured.
    fn steps(&self) -> Steps;

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
