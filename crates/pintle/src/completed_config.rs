//! The completed configuration: the parts that all servers of the chain share.

use crate::{
    Options,
    config::Config,
    enablement,
    engine::EngineMetrics,
    engines::Engines,
    feature_metrics::feature_metrics,
    lifecycle::Lifecycle,
    run_error::RunError,
    storage_factory::storage_factory,
    version::{API_VERSION, version},
};
use pintle_api::{
    certificates::certificate_signing_request::IssuedCertificateMetrics, core::service::AllocationMetrics,
};
use pintle_apiserver::{
    health::{CheckScope, Health},
    metrics::{Metrics, StorageSizes},
    registry::StorageFactory,
    resource_config::ResourceConfig,
};
use pintle_dialer::{Peers, RestClientMetrics};
use pintle_machinery::{Value, status::aggregate};
use pintle_supervisor::Supervisor;
use prometheus::core::Collector;
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};
use tokio::sync::watch;

/// A configuration from which [`crate::server_chain::ServerChain::new`] creates the servers.
pub(crate) struct CompletedConfig {
    /// The options, and everything that was loaded from the files they name.
    pub(crate) loaded: Config,
    pub(crate) engines: Arc<Engines>,
    /// Configures the storage of each resource.
    pub(crate) storage: Arc<StorageFactory>,
    /// The enabled groups, versions and resources.
    pub(crate) resource_config: ResourceConfig,
    pub(crate) metrics: Arc<Metrics>,
    /// The size of the stored data in bytes, for the metrics.
    pub(crate) storage_sizes: Arc<StorageSizes>,
    pub(crate) health: Arc<Health>,
    pub(crate) supervisor: Supervisor,
    /// The signals of the shutdown.
    pub(crate) lifecycle: Lifecycle,
    /// Becomes true when the background work has to end.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl Config {
    /// Completes the configuration with open engines. The tasks of the server end when the lifecycle is over.
    pub(crate) fn complete(
        self,
        engines: &Arc<Engines>,
        engine_metrics: &Arc<EngineMetrics>,
        lifecycle: &Lifecycle,
    ) -> Result<CompletedConfig, RunError> {
        let options = &self.options;
        let stopping = lifecycle.stopped();
        let supervisor = Supervisor::current();
        let storage = storage_factory(options, engines, &self.gates)
            .encryption(self.encryption.resources())
            .observer(engine_metrics.clone());
        let health = Arc::new(Health::new(supervisor.clone()));
        health.set_livez_grace_period(options.management.livez_grace_period);
        // The server calls its own handler in the process, without a certificate that could expire.
        health.add("loopback-serving-certificate", CheckScope::NotReady, Arc::new(|| Ok(())));
        engines.watch_health(&health, options, &supervisor, &stopping);
        self.encryption.add_health_check(&health);
        let metrics = self.metrics(engine_metrics)?;
        let resource_config = enablement::resource_config(&options.runtime_config)?;
        Ok(CompletedConfig {
            engines: engines.clone(),
            storage: Arc::new(storage),
            resource_config,
            metrics,
            storage_sizes: Arc::default(),
            health,
            supervisor,
            lifecycle: lifecycle.clone(),
            stopping,
            loaded: self,
        })
    }

    /// The metrics of the process, with those of the parts of this configuration.
    fn metrics(&self, engine_metrics: &EngineMetrics) -> Result<Arc<Metrics>, RunError> {
        let configuration = self.options.metrics.configuration();
        let configuration =
            configuration.map_err(|errors| RunError::Options(aggregate(errors.into_iter())))?;
        let metrics = Metrics::configured(&configuration)?;
        metrics.set_build_info(&version(self.gates.versions(), self.options.version.reported()))?;
        metrics.register(feature_metrics(&self.gates, API_VERSION)?)?;
        metrics.register(self.authorization.metrics())?;
        metrics.register(self.encryption.metrics())?;
        metrics.register(engine_metrics.collectors())?;
        metrics.register(self.audit_metrics.collectors())?;
        metrics.register(self.admission.collectors())?;
        metrics.register(vec![Box::new(self.egress.metrics.clone()) as _])?;
        metrics.register(self.kubelets.log_metrics.collectors())?;
        metrics.register(process_metrics())?;
        Ok(Arc::new(metrics))
    }
}

/// The metrics of parts that belong to the process, and to no server.
fn process_metrics() -> Vec<Box<dyn Collector>> {
    let mut all = Peers::Webhooks.collectors();
    all.extend(Peers::ApiServices.collectors());
    all.extend(RestClientMetrics::of_process().into_iter().flat_map(RestClientMetrics::collectors));
    let issued = IssuedCertificateMetrics::of_process();
    all.extend(issued.into_iter().flat_map(IssuedCertificateMetrics::collectors));
    all.extend(AllocationMetrics::of_process().into_iter().flat_map(AllocationMetrics::collectors));
    all
}

impl CompletedConfig {
    /// The options.
    pub(crate) fn options(&self) -> &Options {
        &self.loaded.options
    }

    /// The response of `/version`.
    pub(crate) fn version(&self) -> Value {
        version(self.loaded.gates.versions(), self.options().version.reported())
    }

    /// The host and port by which documents name the server.
    pub(crate) fn external_address(&self) -> String {
        let host = self.options().management.external_hostname.as_str();
        let advertised = self.advertised();
        match host {
            "" => advertised.to_string(),
            host if host.contains(':') && !host.starts_with('[') && host.parse::<IpAddr>().is_err() => {
                host.to_owned()
            }
            host if host.contains(':') => {
                format!("[{}]:{}", host.trim_matches(['[', ']']), advertised.port())
            }
            host => format!("{host}:{}", advertised.port()),
        }
    }

    /// The address and port that the server publishes.
    pub(crate) fn advertised(&self) -> SocketAddr {
        SocketAddr::new(self.options().advertised(), self.loaded.address.port())
    }
}
