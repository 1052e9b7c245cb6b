//! The parts of aggregation: services and their addresses, the client certificate of the aggregator, API services.

use crate::{AggregationOptions, Options, dynamic_files::DynamicFiles, run_error::RunError};
use pintle_aggregator::{ApiServices, DiscoveryManager, OpenApiManager, ServiceDirectory};
use pintle_apiserver::{post_start_hooks::HookContext, registry::Stores};
use pintle_dialer::{ClientCertificate, EgressSelector, Network, Outbound};
use pintle_go_forms::read_file;
use pintle_machinery::{GroupResource, Status};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

/// The parts of aggregation that all servers of the chain share.
pub(crate) struct Aggregation {
    /// The services of the cluster, by which API services and webhooks are reached.
    pub(crate) directory: Arc<ServiceDirectory>,
    /// How webhooks are reached.
    pub(crate) outbound: Outbound,
    pub(crate) api_services: Arc<ApiServices>,
    pub(crate) discovery: Arc<DiscoveryManager>,
    pub(crate) open_api: Arc<OpenApiManager>,
    certificate: Arc<ClientCertificate>,
    /// The files of the client certificate, and their contents at the start.
    files: Option<(Vec<PathBuf>, Vec<Vec<u8>>)>,
}

impl Aggregation {
    /// Loads the files that the options name.
    pub(crate) fn load(options: &Options, egress: &EgressSelector) -> Result<Aggregation, RunError> {
        let AggregationOptions { proxy_client_cert_file, proxy_client_key_file, .. } = &options.aggregation;
        let certificate = Arc::new(ClientCertificate::default());
        let files = match (proxy_client_cert_file, proxy_client_key_file) {
            (Some(cert), Some(key)) => {
                let paths = vec![cert.clone(), key.clone()];
                let read =
                    |path: &PathBuf| read_file(path).map_err(|error| RunError::Options(error.to_string()));
                let contents = paths.iter().map(read).collect::<Result<Vec<_>, _>>()?;
                apply(&certificate, &contents).map_err(RunError::Options)?;
                Some((paths, contents))
            }
            (None, None) => None,
            _ => {
                let message =
                    "--proxy-client-cert-file and --proxy-client-key-file must be specified together";
                return Err(RunError::Options(message.to_owned()));
            }
        };
        let directory = Arc::new(ServiceDirectory::new(options.aggregation.routing()));
        let api_services = Arc::new(ApiServices::new(
            directory.clone(),
            certificate.clone(),
            egress.dialer(Network::Cluster),
        ));
        let discovery = DiscoveryManager::new(&api_services);
        let open_api = OpenApiManager::new(&api_services);
        let outbound = Outbound { services: directory.clone(), egress: egress.clone() };
        Ok(Aggregation { directory, outbound, api_services, discovery, open_api, certificate, files })
    }

    /// Sets the address that the server listens on.
    pub(crate) fn set_address(&self, address: SocketAddr) {
        let host = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        self.directory.set_own_address(SocketAddr::new(host, address.port()).to_string());
    }

    /// The client certificate by which other servers believe this one the user.
    pub(crate) fn certificate(&self) -> Arc<ClientCertificate> {
        self.certificate.clone()
    }

    /// Whether there is a client certificate.
    pub(crate) fn has_certificate(&self) -> bool {
        self.files.is_some()
    }

    /// Starts to follow services and their endpoints.
    pub(crate) fn follow_services(&self, stores: &Stores, hook: &HookContext) {
        let cacher = |group: &str, resource: &str| {
            stores.store(&GroupResource::new(group, resource)).ok().map(|store| store.cacher().clone())
        };
        let (services, slices) = (cacher("", "services"), cacher("discovery.k8s.io", "endpointslices"));
        let (directory, stopping) = (self.directory.clone(), hook.stopping().clone());
        hook.spawn_restarting(move || {
            let (directory, stopping) = (directory.clone(), stopping.clone());
            let (services, slices) = (services.clone(), slices.clone());
            async move { directory.run(services.as_ref(), slices.as_ref(), stopping).await }
        });
    }

    /// Starts to follow API services.
    ///
    /// # Errors
    /// 404 when they are disabled.
    pub(crate) fn follow_api_services(&self, stores: &Stores, hook: &HookContext) -> Result<(), Status> {
        let cacher =
            stores.store(&GroupResource::new("apiregistration.k8s.io", "apiservices"))?.cacher().clone();
        let (api_services, stopping) = (self.api_services.clone(), hook.stopping().clone());
        hook.spawn_restarting(move || {
            let (api_services, cacher, stopping) = (api_services.clone(), cacher.clone(), stopping.clone());
            async move { api_services.run(&cacher, stopping).await }
        });
        Ok(())
    }

    /// The files of the client certificate, for reloading; `None` without one.
    pub(crate) fn dynamic_files(&self) -> Option<DynamicFiles> {
        let (paths, first) = self.files.clone()?;
        let certificate = self.certificate.clone();
        let apply = Box::new(move |contents: &[Vec<u8>]| apply(&certificate, contents));
        Some(DynamicFiles::new("proxy client certificate", paths, first, apply))
    }
}

fn apply(certificate: &ClientCertificate, contents: &[Vec<u8>]) -> Result<(), String> {
    match contents {
        [cert, key] => certificate
            .set(cert.clone(), key.clone())
            .map_err(|error| format!("--proxy-client-cert-file: {error}")),
        _ => Err("a file is missing".to_owned()),
    }
}
