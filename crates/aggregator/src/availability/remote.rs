//! The controller of the `Available` condition of API services with a service.

use super::{AvailabilityMetrics, probe::probe, write};
use crate::{
    api_service::resource_name,
    api_services::{ApiService, ApiServices},
    backend::{Backend, BackendSpec},
    condition::{Availability, is_available},
    service_directory::Endpoints,
};
use pintle_apiserver::{post_start_hooks::HookContext, registry::Stores, serving::stopped};
use pintle_controller::{Reconciler, WorkQueue, WorkQueueMetrics};
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

    /// Measures the work queue.
    pub fn measure(&self, metrics: &WorkQueueMetrics) {
        metrics.measure("RemoteAvailabilityController", &self.queue);
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
        let Some(backend) = &service.backend else {
            // Without a service it is always available.
            self.metrics.set(name, true);
            return Ok(());
        };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Routing, ServiceDirectory, condition::condition};
    use pintle_apiserver::registry::{Engine, StorageFactory};
    use pintle_dialer::{ClientCertificate, Dialer};
    use pintle_machinery::{GroupResource, Value, ValueExt, json};
    use pintle_registry::{DeleteOptions, Resource, Scope, WriteOptions};
    use pintle_storage::MemoryStorage;
    use pintle_supervisor::Supervisor;
    use prometheus::{core::Collector, proto::Metric};
    use std::net::SocketAddr;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
        sync::watch,
    };
    use tokio_rustls::{
        TlsAcceptor,
        rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer},
    };

    /// The controller over the memory engine, with what it follows.
    struct Fixture {
        stores: Arc<Stores>,
        metrics: AvailabilityMetrics,
        _stop: watch::Sender<bool>,
    }

    impl Fixture {
        async fn start() -> Fixture {
            let engine = Engine { storage: Arc::new(MemoryStorage::new()), exclusive: true };
            let storage = Arc::new(StorageFactory::new(engine, "/registry"));
            let namespaced = |group, plural, kind, schema| {
                Resource::new(group, "v1", plural, plural, kind, Scope::Namespaced, schema)
            };
            let mut resources = crate::resources();
            resources.push(namespaced("", "services", "Service", "k8s.io/api/core/v1.Service"));
            resources.push(namespaced(
                "discovery.k8s.io",
                "endpointslices",
                "EndpointSlice",
                "k8s.io/api/discovery/v1.EndpointSlice",
            ));
            let stores = Stores::start(resources, Vec::new(), &storage, &Supervisor::current()).unwrap();
            stores.wait_ready().await.unwrap();
            let directory = Arc::new(ServiceDirectory::new(Routing::Endpoints));
            let api_services = Arc::new(ApiServices::new(
                directory.clone(),
                Arc::new(ClientCertificate::default()),
                Dialer::default(),
            ));
            let metrics = AvailabilityMetrics::new().unwrap();
            let controller = RemoteAvailability::new(&stores, &api_services, metrics.clone());
            let (stop, stopping) = watch::channel(false);
            let cacher = |group: &str, plural: &str| {
                stores.store(&GroupResource::new(group, plural)).unwrap().cacher().clone()
            };
            let (services, slices) = (cacher("", "services"), cacher("discovery.k8s.io", "endpointslices"));
            let own = cacher("apiregistration.k8s.io", "apiservices");
            tokio::spawn({
                let stopping = stopping.clone();
                async move { directory.run(Some(&services), Some(&slices), stopping).await }
            });
            tokio::spawn(async move { api_services.run(&own, stopping).await });
            tokio::spawn(async move { controller.run().await });
            Fixture { stores, metrics, _stop: stop }
        }

        async fn create(&self, resource: GroupResource, namespace: &str, object: Value) {
            self.stores.create(&resource, namespace, object, WriteOptions::default()).await.unwrap();
        }

        async fn update(&self, resource: GroupResource, name: &str, path: &'static str, value: Value) {
            let change = Box::new(move |mut object: Value| {
                object.set(path, value.clone());
                Ok(object)
            });
            self.stores.update(&resource, "n", name, change, WriteOptions::default()).await.unwrap();
        }

        /// Waits until the gauge has exactly these values.
        async fn gauge(&self, expected: &[(&str, f64)]) {
            let values = || {
                let families = self.metrics.collect();
                let gauge = families.iter().find(|one| one.name() == "aggregator_unavailable_apiservice");
                let value = |metric: &Metric| {
                    (metric.get_label()[0].value().to_owned(), metric.get_gauge().get_value())
                };
                gauge
                    .map(|gauge| gauge.get_metric().iter().map(value).collect::<Vec<_>>())
                    .unwrap_or_default()
            };
            let expected: Vec<_> =
                expected.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            let waiting = async {
                while values() != expected {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("the gauge");
        }

        /// Waits until the condition has this reason; returns its message.
        async fn message(&self, reason: &str) -> String {
            let waiting = async {
                loop {
                    let object = self.stores.get(&resource_name(), "", "v1.a.example.com").await.unwrap();
                    match condition(&object, "Available") {
                        Some(found) if found.str_at("reason") == reason => {
                            return found.str_at("message").to_owned();
                        }
                        _ => tokio::task::yield_now().await,
                    }
                }
            };
            tokio::time::timeout(Duration::from_secs(20), waiting).await.expect(reason)
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_gauge_covers_api_services_without_a_service() {
        let fixture = Fixture::start().await;
        for (group, service) in
            [("a.example.com", Value::Null), ("b.example.com", json!({"namespace": "n", "name": "s"}))]
        {
            let object = json!({"kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1",
                "metadata": {"name": format!("v1.{group}")},
                "spec": {"group": group, "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
                    "service": service}});
            fixture.create(resource_name(), "", object).await;
        }
        fixture.gauge(&[("v1.a.example.com", 0.0), ("v1.b.example.com", 1.0)]).await;
        fixture
            .stores
            .delete(&resource_name(), "", "v1.a.example.com", DeleteOptions::default())
            .await
            .unwrap();
        fixture.gauge(&[("v1.b.example.com", 1.0)]).await;
    }

    /// Answers every request with an empty document.
    async fn backend() -> SocketAddr {
        let made = rcgen::generate_simple_self_signed(["s.n.svc".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(socket).await else { continue };
                let mut request = [0; 4096];
                if stream.read(&mut request).await.is_ok() {
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
                    let _ = stream.write_all(answer).await;
                    let _ = stream.shutdown().await;
                }
            }
        });
        address
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_first_missing_part_behind_an_api_service_is_the_reason() {
        let fixture = Fixture::start().await;
        let services = || GroupResource::new("", "services");
        let slices = || GroupResource::new("discovery.k8s.io", "endpointslices");
        let api_service = json!({"kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1",
            "metadata": {"name": "v1.a.example.com"},
            "spec": {"group": "a.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
                "insecureSkipTLSVerify": true, "service": {"namespace": "n", "name": "s", "port": 443}}});
        fixture.create(resource_name(), "", api_service).await;
        assert_eq!(fixture.message("ServiceNotFound").await, "service/s in \"n\" is not present");
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "n"},
            "spec": {"type": "ClusterIP", "ports": [{"port": 80, "name": "https"}]}});
        fixture.create(services(), "n", service).await;
        let message = fixture.message("ServicePortError").await;
        assert_eq!(message, "service/s in \"n\" is not listening on port 443");
        fixture.update(services(), "s", "spec.ports", json!([{"port": 443, "name": "https"}])).await;
        let message = fixture.message("EndpointsNotFound").await;
        assert_eq!(message, "cannot find endpointslices for service/s in \"n\"");
        let address = backend().await;
        let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "s-1", "namespace": "n", "labels": {"kubernetes.io/service-name": "s"}},
            "addressType": "IPv4", "ports": [{"name": "https", "port": address.port()}],
            "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": false}}]});
        fixture.create(slices(), "n", slice).await;
        let message = fixture.message("MissingEndpoints").await;
        assert_eq!(
            message,
            "endpointslices for service/s in \"n\" have no addresses with port name \"https\""
        );
        fixture.update(slices(), "s-1", "endpoints", json!([{"addresses": ["127.0.0.1"]}])).await;
        assert_eq!(fixture.message("Passed").await, "all checks passed");
        // Nothing listens on the discard port.
        fixture.update(slices(), "s-1", "ports", json!([{"name": "https", "port": 9}])).await;
        let message = fixture.message("FailedDiscoveryCheck").await;
        let url = "https://127.0.0.1:9/apis/a.example.com/v1";
        assert_eq!(
            message,
            format!(
                "failing or missing response from {url}: Get \"{url}\": dial tcp 127.0.0.1:9: connect: connection refused"
            )
        );
    }
}
