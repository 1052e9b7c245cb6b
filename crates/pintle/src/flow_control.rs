//! Assembles flow control: its configuration, endpoints, metrics and background tasks.

use crate::{Options, run_error::RunError};
use pintle_apiserver::{
    flow_control_endpoints::FlowControlEndpoints,
    metrics::Metrics,
    post_start_hooks::HookContext,
    registry::{StoredResourceStats, Stores, changes},
    server::PlainEndpoints,
    serving::stopped,
};
use pintle_controlplane::FlowControlController;
use pintle_flowcontrol::{FlowControl, FlowControlConfig, FlowControlMetrics, RealClock};
use pintle_machinery::{GroupResource, Status};
use pintle_supervisor::Supervisor;
use std::sync::Arc;
use tokio::sync::watch;

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
    let limits = (options.max_requests_inflight, options.max_mutating_requests_inflight);
    let limit = options.priority_and_fairness.server_concurrency_limit(limits);
    let Some(server_concurrency_limit) = limit.map_err(RunError::Options)? else { return Ok(None) };
    let clock = Arc::new(RealClock::default());
    let counters = Arc::new(FlowControlMetrics::new(clock.clone())?);
    metrics.register(counters.collectors())?;
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

    /// Loads the flow schemas and priority levels, and starts to follow their changes.
    ///
    /// # Errors
    /// When the objects cannot be read.
    pub(crate) async fn start_consumer(&self, hook: &HookContext) -> Result<(), Status> {
        let registry = self.stores.clone();
        let controller =
            FlowControlController::new(registry, self.flow_control.clone(), self.changes.clone());
        controller.configure().await?;
        let mut stopping = hook.stopping().clone();
        hook.spawn(async move { controller.run(stopped(&mut stopping)).await });
        Ok(())
    }

    /// Starts to adjust the seats of the priority levels.
    pub(crate) fn start_filter(&self, hook: &HookContext) {
        let (flow_control, mut stopping) = (self.flow_control.clone(), hook.stopping().clone());
        hook.spawn(async move { flow_control.run(stopped(&mut stopping)).await });
    }
}
