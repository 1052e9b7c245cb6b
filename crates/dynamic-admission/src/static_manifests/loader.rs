//! Defines [`ManifestLoader`].

use super::{
    manifests::{ManifestDirectory, Manifests},
    objects::{DefaultAndValidate, ManifestKinds, Objects},
};
use parking_lot::Mutex;
use pintle_admission::PluginError;
use pintle_config_metrics::ConfigMetrics;
use pintle_go_forms::quote;
use std::{path::Path, sync::Arc};

/// Loads the manifests that plugins are configured with.
#[derive(Clone)]
pub struct ManifestLoader {
    default_and_validate: DefaultAndValidate,
    /// Identifies the server in metrics.
    api_server_id: Arc<str>,
    directories: Arc<Mutex<Vec<Arc<dyn ManifestDirectory>>>>,
}

impl ManifestLoader {
    /// A loader that knows the rules of the kinds, and the server's identity.
    pub fn new(default_and_validate: DefaultAndValidate, api_server_id: &str) -> ManifestLoader {
        ManifestLoader {
            default_and_validate,
            api_server_id: api_server_id.into(),
            directories: Arc::default(),
        }
    }

    /// The directories that plugins were created with, to be read again when they change.
    pub fn directories(&self) -> Vec<Arc<dyn ManifestDirectory>> {
        self.directories.lock().clone()
    }

    /// The manifests of a plugin; `None` if it is configured with none.
    ///
    /// # Errors
    /// When a manifest cannot be used.
    pub(crate) fn load<T: Send + Sync + 'static, const N: usize>(
        &self,
        plugin: &'static str,
        directory: Option<&Path>,
        kinds: &'static ManifestKinds<N>,
        compile: impl Fn(Objects<N>) -> T + Send + Sync + 'static,
    ) -> Result<Option<Arc<Manifests<T>>>, PluginError> {
        let Some(path) = directory else { return Ok(None) };
        let subject = "the directory of admission manifests of a plugin";
        let metrics =
            ConfigMetrics::new("manifest_admission", subject, &self.api_server_id, &[("plugin", plugin)])
                .map_err(|error| PluginError::Initialization(error.to_string()))?;
        let manifests = Manifests::load(plugin, path, kinds, self.default_and_validate, compile, metrics)
            .map_err(|error| {
                let path = quote(&path.to_string_lossy());
                PluginError::Initialization(format!(
                    "failed to load static {} manifests from {path}: {error}",
                    kinds.subject
                ))
            })?;
        let manifests = Arc::new(manifests);
        self.directories.lock().push(manifests.clone());
        Ok(Some(manifests))
    }
}
