//! The controller of the `Available` condition of API services with a service.

use super::{Availability, AvailabilityMetrics, is_available, probe::probe, write};
use crate::{
    api_service::resource_name,
    api_services::{ApiService, ApiServices, BackendSpec},
    backend::Backend,
    service_directory::Endpoints,
};
use pintle_apiserver::{post_start_hooks::HookContext, registry::Stores, serving::stopped};
use pintle_controller::{Reconciler, WorkQueue};
use pintle_go_forms::quote;
use pintle_machinery::Status;
use pintle_registry::{BoxFuture, Registry};
use std::{sync::Arc, time::Duration};

/// The number of concurrent workers: each may wait for a server that does not answer.
const WORKERS: usize = 32;
/// The interval between checks of an API service without a change.
const INTERVAL: Duration = Duration::from_secs(30);

/// The controller of the `Available` condition of API services with a service.
pub struct RemoteAvailability {
    stores: Arc<Stores>,
    api_services: Arc<ApiServices>,
    queue: Arc<WorkQueue>,
    metrics: AvailabilityMetrics,
}

impl RemoteAvailability {
    /// Creates the controller, not yet running. `stores` has the API services.
    pub fn new(
        stores: &Arc<Stores>,
        api_services: &Arc<ApiServices>,
        metrics: AvailabilityMetrics,
    ) -> RemoteAvailability {
        let queue = Arc::new(WorkQueue::default());
        let names = queue.clone();
        api_services.set_listener(move |name| names.add(name.to_owned()));
        let (names, services) = (queue.clone(), Arc::downgrade(api_services));
        api_services.directory().set_listener(move |namespace, name| {
            let Some(services) = services.upgrade() else { return };
            services.behind(namespace, name).iter().for_each(|name| names.add(name.to_string()));
        });
        RemoteAvailability { stores: stores.clone(), api_services: api_services.clone(), queue, metrics }
    }

    /// Starts the controller.
    pub fn start(self: Arc<Self>, hook: &HookContext) {
        let stopping = hook.stopping().clone();
        hook.spawn_restarting(move || {
            let (controller, mut stopping) = (self.clone(), stopping.clone());
            async move {
                tokio::select! {
                    () = stopped(&mut stopping) => {}
                    () = controller.run() => {}
                }
            }
        });
    }

    async fn run(&self) {
        self.api_services.directory().wait_synced().await;
        tokio::join!(self.recheck(), self.queue.process(self));
    }

    /// Checks all API services with a service at every interval: a network fails without an event.
    async fn recheck(&self) {
        loop {
            let snapshot = self.api_services.current();
            for (name, _) in snapshot.iter().filter(|(_, service)| service.backend.is_some()) {
                self.queue.add(name.to_string());
            }
            drop(snapshot);
            tokio::time::sleep(INTERVAL).await;
        }
    }

    async fn sync(&self, name: &str) -> Result<(), Failure> {
        let Some(service) = self.api_services.get(name) else {
            self.metrics.forget(name);
            return Ok(());
        };
        let Some(backend) = &service.backend else { return Ok(()) };
        let object = match self.stores.get_cached(&resource_name(), "", name).await {
            Ok(object) => object,
            // Its event follows.
            Err(status) if status.code == 404 => return Ok(()),
            Err(status) => return Err(Failure::Status(status)),
        };
        if BackendSpec::of(&object).as_ref() != Some(backend.spec()) {
            // It has changed just now; its event follows.
            return Ok(());
        }
        let checked = self.check(&service, backend).await?;
        self.metrics.set(name, checked.status == "True");
        let written = write(&self.stores, &object, &checked).await.map_err(Failure::Status)?;
        if written && is_available(&object) && checked.status != "True" {
            self.metrics.count(name, checked.reason);
        }
        match checked.reason {
            // The server may be reachable again before anything changes here.
            DISCOVERY_FAILED => Err(Failure::Unreachable(checked.message)),
            _ => Ok(()),
        }
    }

    async fn check(&self, service: &ApiService, backend: &Backend) -> Result<Availability, Failure> {
        let unavailable = |reason, message| Ok(Availability { status: "False", reason, message });
        if let Err((reason, message)) = self.check_service(backend.spec()) {
            return unavailable(reason, message);
        }
        if let Err(error) = backend.client() {
            // The condition stays as it is, as in the reference.
            return Err(Failure::Unreachable(error.to_string()));
        }
        match probe(service, backend).await {
            Ok(()) => {
                Ok(Availability { status: "True", reason: "Passed", message: "all checks passed".to_owned() })
            }
            Err(message) => unavailable(DISCOVERY_FAILED, message),
        }
    }

    /// Checks the service and its endpoints.
    ///
    /// # Errors
    /// Reason and message of the condition.
    fn check_service(&self, spec: &BackendSpec) -> Result<(), (&'static str, String)> {
        let BackendSpec { namespace, name, port, .. } = spec;
        let directory = self.api_services.directory();
        let of = format!("service/{name} in {}", quote(namespace));
        let Some(service) = directory.service(namespace, name) else {
            return Err(("ServiceNotFound", format!("{of} is not present")));
        };
        if service.service_type != "ClusterIP" {
            return Ok(());
        }
        let Some(port_name) = service.port_name(*port) else {
            return Err(("ServicePortError", format!("{of} is not listening on port {port}")));
        };
        match directory.endpoints(namespace, name, port_name) {
            Endpoints::Ready => Ok(()),
            Endpoints::NoSlices => Err(("EndpointsNotFound", format!("cannot find endpointslices for {of}"))),
            Endpoints::NoneReady => Err((
                "MissingEndpoints",
                format!("endpointslices for {of} have no addresses with port name {}", quote(port_name)),
            )),
        }
    }
}

const DISCOVERY_FAILED: &str = "FailedDiscoveryCheck";

/// The reason why a check is repeated soon.
#[derive(Debug)]
pub enum Failure {
    /// A read or a write of this server failed.
    Status(Status),
    /// The server behind the service cannot be reached.
    Unreachable(String),
}

impl Reconciler for RemoteAvailability {
    type Error = Failure;

    fn workers(&self) -> usize {
        WORKERS
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(self.sync(name))
    }

    fn log_failure(&self, name: &str, failure: &Failure) {
        match failure {
            Failure::Status(status) => {
                tracing::warn!(%name, error = %status.message, "an API service: trying again");
            }
            // The condition of the API service tells the reason.
            Failure::Unreachable(error) => tracing::debug!(%name, %error, "an API service is not available"),
        }
    }
}
