//! Flow control in the process: what it is made of, its endpoints, counters and background work.

use crate::{Options, run::RunError};
use pintle_apiserver::{
    flow_control_endpoints::FlowControlEndpoints,
    health::{CheckScope, Health},
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

/// The parts by the names of their health checks.
const CONSUMER: &str = "poststarthook/priority-and-fairness-config-consumer";
const FILTER: &str = "poststarthook/priority-and-fairness-filter";

/// Flow control, and what feeds it.
pub(crate) struct FlowControlParts {
    pub(crate) flow_control: Arc<FlowControl>,
    stores: Arc<Stores>,
    changes: watch::Receiver<u64>,
    started: watch::Sender<bool>,
}

/// What is done at the start, as the health checks name it.
const HOOKS: [&str; 3] = [
    "priority-and-fairness-config-consumer",
    "priority-and-fairness-config-producer",
    "priority-and-fairness-filter",
];

/// Makes flow control, unless it is switched off. Until it is started only the mandatory objects are in force.
pub(crate) fn build(
    options: &Options,
    all_stores: &[Arc<Stores>],
    stores: &Arc<Stores>,
    metrics: &Metrics,
    health: &Health,
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
    // A resource that is switched off has no objects, and none that change.
    let followed = ["flowschemas", "prioritylevelconfigurations"];
    let followed = followed.iter().filter_map(|name| stores.store(&resource(name)).ok()).collect();
    let started = watch::Sender::new(false);
    for hook in HOOKS {
        let started = started.subscribe();
        let check = move || match *started.borrow() {
            true => Ok(()),
            false => Err("not finished".to_owned()),
        };
        health.add(&format!("poststarthook/{hook}"), CheckScope::Always, Arc::new(check));
    }
    Ok(Some(FlowControlParts {
        flow_control,
        stores: stores.clone(),
        changes: changes(followed, stopping, supervisor),
        started,
    }))
}

impl FlowControlParts {
    /// The debug endpoints.
    pub(crate) fn endpoints(&self) -> Arc<dyn PlainEndpoints> {
        Arc::new(FlowControlEndpoints(self.flow_control.clone()))
    }

    /// Makes the objects take effect, and goes on doing so.
    pub(crate) async fn start(
        &self,
        supervisor: &Supervisor,
        stopping: &watch::Receiver<bool>,
    ) -> Result<[JoinHandle<()>; 2], RunError> {
        let registry = self.stores.clone();
        let controller =
            FlowControlController::new(registry, self.flow_control.clone(), self.changes.clone());
        controller.configure().await.map_err(RunError::Bootstrap)?;
        self.started.send_replace(true);
        let (mut stop_controller, mut stop_adjusting) = (stopping.clone(), stopping.clone());
        let flow_control = self.flow_control.clone();
        Ok([
            supervisor.spawn(CONSUMER, async move { controller.run(stopped(&mut stop_controller)).await }),
            supervisor.spawn(FILTER, async move { flow_control.run(stopped(&mut stop_adjusting)).await }),
        ])
    }
}
