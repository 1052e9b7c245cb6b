//! The admission chain: calls all plugins in their order.

use crate::{AdmissionPlugin, AdmissionRequest};
use pintle_machinery::Status;
use std::sync::Arc;

/// The plugins that every write passes. The first refusal ends the request.
#[derive(Clone, Default)]
pub struct AdmissionChain {
    plugins: Vec<Arc<dyn AdmissionPlugin>>,
}

impl AdmissionChain {
    /// A chain of these plugins, called in this order.
    pub fn new(plugins: Vec<Arc<dyn AdmissionPlugin>>) -> AdmissionChain {
        AdmissionChain { plugins }
    }

    /// The names of the plugins, in call order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.plugins.iter().map(|plugin| plugin.name())
    }

    /// Calls [`AdmissionPlugin::admit`] of every plugin that handles the request; plugins may change the object. All are
    /// called once more if one of them asks for it with [`crate::Reinvocation::request`].
    ///
    /// # Errors
    /// The `Status` of the first refusal.
    pub async fn admit(&self, request: &mut AdmissionRequest<'_>) -> Result<(), Status> {
        loop {
            for plugin in &self.plugins {
                if plugin.handles(request) {
                    plugin.admit(request).await?;
                }
            }
            if !request.reinvocation.begin_second_round() {
                return Ok(());
            }
        }
    }

    /// Calls [`AdmissionPlugin::validate`] of every plugin that handles the request. Plugins may add warnings but not
    /// change the object.
    ///
    /// # Errors
    /// The `Status` of the first refusal.
    pub async fn validate(&self, request: &mut AdmissionRequest<'_>) -> Result<(), Status> {
        for plugin in &self.plugins {
            if plugin.handles(request) {
                plugin.validate(request).await?;
            }
        }
        Ok(())
    }
}
