//! Creates the objects of a new server, and starts the controllers that maintain them.

use crate::{EndpointReconcilerType, Options, chain::Chain, hostname::hostname, run_error::RunError};
use pintle_api::core::master_leases;
use pintle_apiserver::{registry::StorageFactory, serving::stopped};
use pintle_controlplane::{ClusterAuthentication, Config, EndpointReconciler, MasterLeases};
use std::sync::Arc;
use tokio::{sync::watch, task::JoinHandle};

/// Creates the objects that every server has, and starts the controllers that maintain them.
pub(crate) async fn start(
    options: &Options,
    port: u16,
    chain: &Chain,
    cluster_authentication: &ClusterAuthentication,
    storage: &StorageFactory,
    stopping: &watch::Receiver<bool>,
) -> Result<JoinHandle<()>, RunError> {
    let config = Config {
        service_network: chain.network.clone(),
        advertise_address: options.advertised(),
        secure_port: port,
        exclusive: !storage.is_shared(),
        endpoint_reconciler: endpoint_reconciler(options, storage)?,
        hostname: hostname(),
        cluster_authentication: cluster_authentication.clone(),
    };
    let stores = Arc::clone(&chain.stores);
    pintle_controlplane::bootstrap(&*stores, &config).await.map_err(RunError::Bootstrap)?;
    let mut stopping = stopping.clone();
    let controllers = chain.supervisor.spawn("poststarthook/bootstrap-controller", async move {
        pintle_controlplane::run(&*stores, &config, stopped(&mut stopping)).await;
    });
    chain.hooks.bootstrapped();
    Ok(controllers)
}

fn endpoint_reconciler(options: &Options, storage: &StorageFactory) -> Result<EndpointReconciler, RunError> {
    Ok(match options.endpoint_reconciler_type {
        EndpointReconcilerType::Lease => {
            let leases = master_leases::resource();
            let prefix = format!("{}/{}/", storage.prefix(), leases.storage.path);
            let storage = storage.plain_storage(leases).map_err(RunError::Assemble)?;
            EndpointReconciler::Lease(MasterLeases::new(storage, prefix))
        }
        EndpointReconcilerType::MasterCount => EndpointReconciler::MasterCount(options.apiserver_count),
        EndpointReconcilerType::None => EndpointReconciler::None,
    })
}
