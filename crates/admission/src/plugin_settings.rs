//! The settings of a plugin at its creation: [`PluginSettings`].

use crate::AdmissionPlugin;
use std::sync::Arc;

/// The settings that a plugin is created from.
#[derive(Debug, Clone, Copy)]
pub struct PluginSettings<'a> {
    /// The plugin's configuration, in YAML or JSON; `None` when the configuration file has none for it.
    pub configuration: Option<&'a [u8]>,
    /// The flags of plugins.
    pub flags: &'a PluginFlags,
}

/// The flags that configure single plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginFlags {
    /// For how many seconds pods tolerate a node that is not ready, by `DefaultTolerationSeconds`.
    pub default_not_ready_toleration_seconds: i64,
    /// For how many seconds pods tolerate a node that is unreachable, by `DefaultTolerationSeconds`.
    pub default_unreachable_toleration_seconds: i64,
}

impl Default for PluginFlags {
    fn default() -> PluginFlags {
        PluginFlags { default_not_ready_toleration_seconds: 300, default_unreachable_toleration_seconds: 300 }
    }
}

/// The reason why a plugin cannot be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginError {
    /// The configuration cannot be read.
    Configuration(String),
    /// The configuration was read, but the plugin cannot work with it.
    Initialization(String),
}

impl PluginError {
    /// The configuration cannot be read.
    pub fn configuration(reason: impl ToString) -> PluginError {
        PluginError::Configuration(reason.to_string())
    }
}

/// Creates a plugin from its settings.
pub type PluginFactory =
    dyn Fn(&PluginSettings<'_>) -> Result<Arc<dyn AdmissionPlugin>, PluginError> + Send + Sync;
