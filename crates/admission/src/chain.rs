//! All plugins, in their order.

use crate::{AdmissionPlugin, AdmissionRequest, plugins};
use pintle_machinery::Status;
use std::sync::Arc;

/// The plugins that decide on every write. The first refusal is the answer.
#[derive(Clone, Default)]
pub struct AdmissionChain {
    plugins: Vec<Arc<dyn AdmissionPlugin>>,
}

impl AdmissionChain {
    /// A chain of these plugins, called in this order.
    pub fn new(plugins: Vec<Arc<dyn AdmissionPlugin>>) -> AdmissionChain {
        AdmissionChain { plugins }
    }

    /// The plugins of a default server.
    pub fn default_plugins() -> AdmissionChain {
        AdmissionChain::new(plugins::default_plugins())
    }

    /// The names of the plugins, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.plugins.iter().map(|plugin| plugin.name())
    }

    /// Lets every plugin change the object.
    ///
    /// # Errors
    /// The first refusal.
    pub async fn admit(&self, request: &mut AdmissionRequest<'_>) -> Result<(), Status> {
        for plugin in &self.plugins {
            if plugin.handles(request) {
                plugin.admit(request).await?;
            }
        }
        Ok(())
    }

    /// Asks every plugin whether the object may be stored. Plugins add warnings only; the object stays as it is.
    ///
    /// # Errors
    /// The first refusal.
    pub async fn validate(&self, request: &mut AdmissionRequest<'_>) -> Result<(), Status> {
        for plugin in &self.plugins {
            if plugin.handles(request) {
                plugin.validate(request).await?;
            }
        }
        Ok(())
    }
}
