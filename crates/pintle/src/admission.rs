//! Assembles the admission chain: the plugins of the admission crate, and those of other crates.

use crate::{Options, run_error::RunError};
use pintle_admission::{AdmissionChain, AdmissionConfiguration, ChainConfig, PluginFactories};

/// The admission chain, and the parts of its plugins that are started after it is created.
pub(crate) struct Admission {
    pub(crate) chain: AdmissionChain,
}

impl Admission {
    /// Loads the configuration that the options name, and creates the plugins.
    pub(crate) fn load(options: &Options) -> Result<Admission, RunError> {
        let options = &options.admission;
        let configuration = match &options.config_file {
            Some(path) => AdmissionConfiguration::read(path)?,
            None => AdmissionConfiguration::default(),
        };
        let factories = PluginFactories::default();
        let config = ChainConfig {
            enable: options.enable_plugins.clone(),
            disable: options.disable_plugins.clone(),
            only: options.only_plugins.clone(),
            configuration,
            flags: options.plugin_flags,
            further_defaults: Vec::new(),
            factories,
        };
        Ok(Admission { chain: config.chain()? })
    }
}
