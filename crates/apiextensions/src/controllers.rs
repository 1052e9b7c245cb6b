//! The controllers of definitions. Each receives changes from the informer, keeps a work queue of names, and writes
//! through the server's own registry, as a client would.

mod api_approval;
pub(crate) mod condition;
mod establishing;
pub(crate) mod finalizer;
mod naming;
mod non_structural;

pub(crate) use api_approval::ApiApproval;
pub(crate) use establishing::Establishing;
pub(crate) use finalizer::Finalizer;
pub(crate) use naming::Naming;
pub(crate) use non_structural::NonStructural;

use crate::informer::{Change, Definitions, Handler};
use pintle_apiserver::{registry::Stores, serving::stopped};
use pintle_controller::{Reconciler, WorkQueue, WorkQueueMetrics};
use pintle_machinery::{GroupResource, Status, Value};
use pintle_registry::{BoxFuture, Registry, WriteOptions};
use std::sync::Arc;
use tokio::sync::watch;

/// The dependencies that all controllers share.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) stores: Arc<Stores>,
    pub(crate) definitions: Arc<Definitions>,
}

impl Context {
    /// Updates the status of a definition. A deleted definition is ignored.
    async fn update_status(
        &self,
        name: &str,
        change: impl FnMut(Value) -> Result<Value, Status> + Send,
    ) -> Result<(), Status> {
        let options = WriteOptions {
            field_manager: "kube-apiserver".to_owned(),
            subresource: "status",
            ..WriteOptions::default()
        };
        match self.stores.update(&resource(), "", name, Box::new(change), options).await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(()),
        }
    }
}

/// The group and the plural name of definitions.
pub(crate) fn resource() -> GroupResource {
    GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

/// One controller.
pub(crate) trait Controller: Send + Sync {
    /// The name in logs.
    fn name(&self) -> &'static str;

    /// The name of the work queue in metrics.
    fn queue_name(&self) -> &'static str;

    /// The definitions to process after a change.
    fn wants(&self, change: &Change) -> Vec<String>;

    /// The number of definitions that are processed concurrently.
    fn workers(&self) -> usize {
        1
    }

    /// Reconciles one definition.
    fn sync<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Status>>;
}

/// A controller with its work queue.
pub(crate) struct Worker<C> {
    controller: C,
    queue: WorkQueue,
}

impl<C: Controller> Worker<C> {
    pub(crate) fn new(controller: C) -> Arc<Worker<C>> {
        Arc::new(Worker { controller, queue: WorkQueue::default() })
    }

    /// Measures the queue.
    pub(crate) fn measure(&self, metrics: &WorkQueueMetrics) {
        metrics.measure(self.controller.queue_name(), &self.queue);
    }

    /// Runs until the server stops.
    pub(crate) async fn run(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        tokio::select! {
            () = stopped(&mut stopping) => {}
            () = self.queue.process(&*self) => {}
        }
    }
}

impl<C: Controller> Reconciler for Worker<C> {
    type Error = Status;

    fn workers(&self) -> usize {
        self.controller.workers()
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Status>> {
        self.controller.sync(name)
    }

    fn log_failure(&self, name: &str, status: &Status) {
        let controller = self.controller.name();
        tracing::warn!(controller, %name, error = %status.message, "trying again");
    }
}

impl<C: Controller> Handler for Worker<C> {
    fn changed(&self, change: &Change) {
        for name in self.controller.wants(change) {
            self.queue.add(name);
        }
    }
}
