//! The egress selector: the dialers of the networks that the server connects to.

use crate::{Options, run_error::RunError};
use pintle_dialer::{Dialer, EgressMetrics, EgressSelector, Network};
use pintle_storage::{BoxFuture, EtcdConnection, EtcdDialer};
use std::sync::Arc;

/// The egress selector, and the metrics of its proxies.
pub(crate) struct Egress {
    pub(crate) selector: EgressSelector,
    pub(crate) metrics: EgressMetrics,
}

impl Egress {
    /// Loads the configuration that the options name.
    pub(crate) fn load(options: &Options) -> Result<Egress, RunError> {
        let metrics = EgressMetrics::new()?;
        let selector = match &options.egress_selector_config_file {
            None => EgressSelector::default(),
            Some(path) => EgressSelector::load(path, &metrics)?,
        };
        Ok(Egress { selector, metrics })
    }

    /// The dialer for etcd; `None` for direct connections.
    pub(crate) fn etcd(&self) -> Option<Arc<dyn EtcdDialer>> {
        let dialer = self.selector.dialer(Network::Etcd);
        (!dialer.is_direct()).then(|| Arc::new(EtcdNetwork(dialer)) as Arc<dyn EtcdDialer>)
    }
}

struct EtcdNetwork(Dialer);

impl EtcdDialer for EtcdNetwork {
    fn dial<'a>(&'a self, address: &'a str) -> BoxFuture<'a, Result<Box<dyn EtcdConnection>, String>> {
        Box::pin(async move {
            let link = self.0.dial(address).await.map_err(|cause| cause.to_string())?;
            Ok(Box::new(link) as Box<dyn EtcdConnection>)
        })
    }
}
