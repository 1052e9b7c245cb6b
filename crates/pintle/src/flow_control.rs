//! Assembles flow control: its configuration, endpoints, metrics and background tasks.

use crate::{Options, hooks::Hooks, run_error::RunError};
use pintle_apiserver::{
    flow_control_endpoints::FlowControlEndpoints,
    metrics::Metrics,
    registry::{StoredResourceStats, Stores, changes},
    server::PlainEndpoints,
    serving::stopped,
};
use pintle_controlplane::FlowControlController;
use pintle_flowcontrol::{FlowControl, FlowControlConfig, FlowControlMetrics, RealClock};
use pintle_machinery::GroupResource;
use pintle_supervisor::Supervisor;
use std::sync::Arc;
use tokio::{sync::watch, task::JoinHandle};

/// The names of the tasks, which are those of their health checks.
const CONSUMER: &str = "poststarthook/priority-and-fairness-config-consumer";
const FILTER: &str = "poststarthook/priority-and-fairness-filter";

/// Flow control, and the stores of its objects.
pub(crate) struct FlowControlParts {
    pub(crate) flow_control: Arc<FlowControl>,
    stores: Arc<Stores>,
    changes: watch::Receiver<u64>,
}

/// Builds flow control; `None` when it is disabled. Only the mandatory objects are in force until it is started.
pub(crate) fn build(
    options: &Options,
    all_stores: &[Arc<Stores>],
    stores: &Arc<Stores>,
    metrics: &Metrics,
    supervisor: &Supervisor,
    stopping: &watch::Receiver<bool>,
) -> Result<Option<FlowControlParts>, RunError> {
    let limit = options.priority_and_fairness.server_concurrency_limit(options);
    let Some(server_concurrency_limit) = limit.map_err(RunError::Options)? else { return Ok(None) };
    let assemble = |error: prometheus::Error| RunError::Assemble(error.to_string());
    let clock = Arc::new(RealClock::default());
    let counters = Arc::new(FlowControlMetrics::new(clock.clone()).map_err(assemble)?);
    metrics.register(counters.collectors()).map_err(assemble)?;
    let flow_control = FlowControl::new(FlowControlConfig {
        clock,
        server_concurrency_limit,
        stats: Arc::new(StoredResourceStats(all_stores.to_vec())),
        metrics: counters,
    });
    let resource = |name: &str| GroupResource::new("flowcontrol.apiserver.k8s.io", name);
    // A disabled resource has no objects to follow.
    let followed = ["flowschemas", "prioritylevelconfigurations"];
    let followed = followed.iter().filter_map(|name| stores.store(&resource(name)).ok()).collect();
    Ok(Some(FlowControlParts {
        flow_control,
        stores: stores.clone(),
        changes: changes(followed, stopping, supervisor),
    }))
}

impl FlowControlParts {
    /// The debug endpoints.
    pub(crate) fn endpoints(&self) -> Arc<dyn PlainEndpoints> {
        Arc::new(FlowControlEndpoints(self.flow_control.clone()))
    }

    /// Loads the flow schemas and priority levels, and starts the tasks that follow their changes.
    pub(crate) async fn start(
        &self,
        supervisor: &Supervisor,
        hooks: &Hooks,
        stopping: &watch::Receiver<bool>,
    ) -> Result<[JoinHandle<()>; 2], RunError> {
        let registry = self.stores.clone();
        let controller =
            FlowControlController::new(registry, self.flow_control.clone(), self.changes.clone());
        controller.configure().await.map_err(RunError::Bootstrap)?;
        let (mut stop_controller, mut stop_adjusting) = (stopping.clone(), stopping.clone());
        let flow_control = self.flow_control.clone();
        let following =
            supervisor.spawn(CONSUMER, async move { controller.run(stopped(&mut stop_controller)).await });
        let adjusting =
            supervisor.spawn(FILTER, async move { flow_control.run(stopped(&mut stop_adjusting)).await });
        hooks.flow_control_started();
        Ok([following, adjusting])
    }
}
