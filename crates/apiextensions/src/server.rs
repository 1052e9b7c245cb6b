//! The API extensions server: its informer, the serving of custom resources, and the controllers.

use crate::{
    controllers::{
        ApiApproval, Context, Controller, Establishing, Finalizer, Naming, NonStructural, Worker, resource,
    },
    conversion::{ConversionMetrics, Webhooks},
    group_versions::GroupVersions,
    informer::{Definitions, Handler, Informer},
    serving::Serving,
    structural::rules::RuleMetrics,
};
use pintle_apiserver::{
    post_start_hooks::HookContext,
    registry::{StorageFactory, Stores},
};
use pintle_controller::WorkQueueMetrics;
use pintle_dialer::Outbound;
use pintle_machinery::Status;
use pintle_openapi::CustomDefinitions;
use pintle_registry::BoxFuture;
use pintle_supervisor::Supervisor;
use prometheus::core::Collector;
use std::sync::Arc;
use tokio::sync::watch;

/// Runs a controller until the shutdown signal.
type Run = Arc<dyn Fn(watch::Receiver<bool>) -> BoxFuture<'static, ()> + Send + Sync>;

/// The server of custom resources: the informer of definitions, serving, and the controllers.
pub struct ApiExtensions {
    definitions: Arc<Definitions>,
    group_versions: Arc<GroupVersions>,
    synced: watch::Receiver<bool>,
    /// `None` when the resource of definitions is disabled.
    informer: Option<Arc<Informer>>,
    controllers: Vec<Run>,
    metrics: ConversionMetrics,
}

impl ApiExtensions {
    /// Creates the server of the definitions in `stores`, not yet running. When the resource of definitions is disabled,
    /// no custom resource is served. Conversion webhooks are reached by `outbound`.
    ///
    /// # Errors
    /// When the metrics cannot be created, which would be a defect.
    pub fn new(
        stores: &Arc<Stores>,
        storage: &Arc<StorageFactory>,
        supervisor: &Supervisor,
        outbound: Outbound,
        queues: &WorkQueueMetrics,
    ) -> Result<ApiExtensions, Status> {
        let definitions = Arc::new(Definitions::default());
        let context = Context { stores: stores.clone(), definitions: definitions.clone() };
        let metrics = ConversionMetrics::new().map_err(Status::internal_error)?;
        let webhooks = Webhooks { outbound, metrics: metrics.clone() };
        let (synced, is_synced) = watch::channel(false);
        let group_versions = Arc::new(GroupVersions::default());
        let (mut informer, mut controllers) = (None, Vec::new());
        if let Ok(store) = stores.store(&resource()) {
            let serving = Serving::new(stores.clone(), storage.clone(), supervisor.clone(), webhooks);
            // Serving comes first, so that the conditions that controllers set are true when they are set.
            let mut handlers: Vec<Arc<dyn Handler>> = vec![Arc::new(serving), group_versions.clone()];
            add(Naming::new(context.clone()), &mut handlers, &mut controllers, queues);
            add(Establishing(context.clone()), &mut handlers, &mut controllers, queues);
            add(NonStructural(context.clone()), &mut handlers, &mut controllers, queues);
            add(ApiApproval(context.clone()), &mut handlers, &mut controllers, queues);
            add(Finalizer(context), &mut handlers, &mut controllers, queues);
            informer = Some(Arc::new(Informer { store, definitions: definitions.clone(), handlers, synced }));
        } else {
            synced.send_replace(true);
        }
        Ok(ApiExtensions { definitions, group_versions, synced: is_synced, informer, controllers, metrics })
    }

    /// Starts to follow the definitions and to serve their custom resources.
    pub fn start_informers(&self, hook: &HookContext) {
        if let Some(informer) = self.informer.clone() {
            let stopping = hook.stopping().clone();
            hook.spawn_restarting(move || informer.clone().run(stopping.clone()));
        }
    }

    /// Starts the controllers.
    pub fn start_controllers(&self, hook: &HookContext) {
        for run in self.controllers.iter().cloned() {
            let stopping = hook.stopping().clone();
            hook.spawn_restarting(move || run(stopping.clone()));
        }
    }

    /// The definitions, for OpenAPI documents.
    pub fn definitions(&self) -> Arc<dyn CustomDefinitions> {
        self.definitions.clone()
    }

    /// The groups and versions that definitions serve.
    pub fn group_versions(&self) -> &GroupVersions {
        &self.group_versions
    }

    /// The metrics of the server.
    pub fn metrics(&self) -> Vec<Box<dyn Collector>> {
        let mut metrics: Vec<Box<dyn Collector>> = vec![Box::new(self.metrics.clone())];
        if let Some(rules) = RuleMetrics::of_process() {
            metrics.push(Box::new(rules.clone()));
        }
        metrics
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

    /// Checks that each stored definition is known, for callers that act on the absence of definitions.
    ///
    /// # Errors
    /// 500 when a definition cannot be read, or was not processed yet, and the errors of the cache.
    pub async fn require_known_definitions(&self) -> Result<(), Status> {
        match &self.informer {
            Some(informer) => informer.require_known().await,
            None => Ok(()),
        }
    }
}

fn add<C: Controller + 'static>(
    controller: C,
    handlers: &mut Vec<Arc<dyn Handler>>,
    controllers: &mut Vec<Run>,
    queues: &WorkQueueMetrics,
) {
    let worker = Worker::new(controller);
    worker.measure(queues);
    handlers.push(worker.clone());
    controllers.push(Arc::new(move |stopping| Box::pin(worker.clone().run(stopping))));
}
