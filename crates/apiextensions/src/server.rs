//! Starts and stops the tasks of the API extensions server.

use crate::{
    controllers::{
        ApiApproval, Context, Controller, Establishing, Finalizer, Naming, NonStructural, Worker, resource,
    },
    conversion::{ConversionMetrics, Webhooks},
    group_versions::GroupVersions,
    informer::{Definitions, Handler, Informer},
    serving::Serving,
};
use pintle_apiserver::registry::{StorageFactory, Stores};
use pintle_machinery::Status;
use pintle_openapi::CustomDefinitions;
use pintle_supervisor::Supervisor;
use pintle_webhook::ClusterIpResolver;
use prometheus::core::Collector;
use std::sync::Arc;
use tokio::{sync::watch, task::JoinHandle};

/// The health checks of the tasks.
const INFORMER: &str = "poststarthook/start-apiextensions-informers";
const CONTROLLERS: &str = "poststarthook/start-apiextensions-controllers";

/// The running server: the informer, serving, and the controllers.
pub struct ApiExtensions {
    definitions: Arc<Definitions>,
    group_versions: Arc<GroupVersions>,
    synced: watch::Receiver<bool>,
    tasks: Vec<JoinHandle<()>>,
    metrics: ConversionMetrics,
}

impl ApiExtensions {
    /// Starts to serve the custom resources of the definitions in `stores`, until `stopping` becomes true. When the
    /// resource of definitions is disabled, no custom resource is served.
    ///
    /// # Errors
    /// When the metrics cannot be created, which would be a defect.
    pub fn start(
        stores: &Arc<Stores>,
        storage: &Arc<StorageFactory>,
        supervisor: &Supervisor,
        stopping: &watch::Receiver<bool>,
    ) -> Result<ApiExtensions, Status> {
        let definitions = Arc::new(Definitions::default());
        let context = Context { stores: stores.clone(), definitions: definitions.clone() };
        let metrics = ConversionMetrics::new().map_err(Status::internal_error)?;
        let services = Arc::new(ClusterIpResolver::new(stores.clone()));
        let webhooks = Webhooks { services, metrics: metrics.clone() };
        let (synced, is_synced) = watch::channel(false);
        let group_versions = Arc::new(GroupVersions::default());
        let Ok(store) = stores.store(&resource()) else {
            synced.send_replace(true);
            let tasks = Vec::new();
            return Ok(ApiExtensions { definitions, group_versions, synced: is_synced, tasks, metrics });
        };
        let serving = Serving::new(stores.clone(), storage.clone(), supervisor.clone(), webhooks);
        // Serving comes first, so that the conditions that controllers set are true when they are set.
        let mut handlers: Vec<Arc<dyn Handler>> = vec![Arc::new(serving), group_versions.clone()];
        let mut tasks = Vec::new();
        run(Naming::new(context.clone()), &mut handlers, &mut tasks, supervisor, stopping);
        run(Establishing(context.clone()), &mut handlers, &mut tasks, supervisor, stopping);
        run(NonStructural(context.clone()), &mut handlers, &mut tasks, supervisor, stopping);
        run(ApiApproval(context.clone()), &mut handlers, &mut tasks, supervisor, stopping);
        run(Finalizer(context), &mut handlers, &mut tasks, supervisor, stopping);
        let informer = Arc::new(Informer { store, definitions: definitions.clone(), handlers, synced });
        let stopping = stopping.clone();
        tasks.push(supervisor.spawn_restarting(INFORMER, move || informer.clone().run(stopping.clone())));
        Ok(ApiExtensions { definitions, group_versions, synced: is_synced, tasks, metrics })
    }

    /// The definitions, for OpenAPI documents.
    pub fn definitions(&self) -> Arc<dyn CustomDefinitions> {
        self.definitions.clone()
    }

    /// The groups and versions that definitions serve.
    pub fn group_versions(&self) -> Arc<GroupVersions> {
        self.group_versions.clone()
    }

    /// The metrics of the server.
    pub fn metrics(&self) -> Vec<Box<dyn Collector>> {
        vec![Box::new(self.metrics.clone())]
    }

    /// Becomes true when every definition that existed at the start was processed.
    pub fn synced(&self) -> watch::Receiver<bool> {
        self.synced.clone()
    }

    /// Waits until every definition that existed at the start is served, as far as it should be.
    pub async fn wait_synced(&self) {
        // An informer that has ended serves nothing more.
        drop(self.synced.clone().wait_for(|synced| *synced).await);
    }

    /// The tasks, which end when the server stops.
    pub fn into_tasks(self) -> Vec<JoinHandle<()>> {
        self.tasks
    }
}

fn run<C: Controller + 'static>(
    controller: C,
    handlers: &mut Vec<Arc<dyn Handler>>,
    tasks: &mut Vec<JoinHandle<()>>,
    supervisor: &Supervisor,
    stopping: &watch::Receiver<bool>,
) {
    let worker = Worker::new(controller);
    handlers.push(worker.clone());
    let stopping = stopping.clone();
    tasks.push(supervisor.spawn_restarting(CONTROLLERS, move || worker.clone().run(stopping.clone())));
}
