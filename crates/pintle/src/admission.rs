//! Assembles the admission chain: the plugins of the admission crate, and those of other crates.

use crate::{Options, run_error::RunError};
use pintle_admission::{
    AdmissionChain, AdmissionConfiguration, AdmissionMetrics, ChainConfig, PluginFactories,
};
use prometheus::core::Collector;

/// The admission chain, and the parts of its plugins that are started after it is created.
pub(crate) struct Admission {
    pub(crate) chain: AdmissionChain,
    metrics: AdmissionMetrics,
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
        let metrics = AdmissionMetrics::new().map_err(|error| RunError::Assemble(error.to_string()))?;
        Ok(Admission { chain: config.chain()?.measured(&metrics), metrics })
    }

    /// The metrics of the chain, for registration.
    pub(crate) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        self.metrics.collectors()
    }
}
