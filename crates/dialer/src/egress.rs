//! The egress selector: how the server connects to the networks around it (`--egress-selector-config-file`,
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/setup-konnectivity/>).
//!
//! A configuration names a proxy for a network. The proxy speaks HTTP `CONNECT` or the protocol of konnectivity. Every
//! connection has a connection to the proxy of its own.

mod config;
mod dial_timeout;
mod http_connect;
mod konnectivity;
mod metrics;
pub(crate) mod proxy;

pub use config::EgressConfigError;
pub use metrics::EgressMetrics;

use crate::{Dialer, Network};
use config::{Connection, EgressSelection};
use http_connect::HttpConnect;
use konnectivity::Konnectivity;
use proxy::{Protocol, Proxy};
use std::path::Path;

/// The dialers of the networks. The default one connects directly everywhere.
#[derive(Debug, Clone, Default)]
pub struct EgressSelector {
    control_plane: Option<Dialer>,
    etcd: Option<Dialer>,
    cluster: Option<Dialer>,
}

impl EgressSelector {
    /// Reads a configuration file, and the certificates that it names.
    ///
    /// # Errors
    /// When the file or a certificate is unusable.
    pub fn load(path: &Path, metrics: &EgressMetrics) -> Result<EgressSelector, EgressConfigError> {
        let mut selector = EgressSelector::default();
        for EgressSelection { network, connection } in config::read(path)? {
            let failed = |reason: String| EgressConfigError::Setup { network: network.name(), reason };
            let dialer = match connection {
                Connection::Direct => Dialer::default(),
                Connection::HttpConnect(proxy) => {
                    let proxy = HttpConnect::new(&proxy).map_err(failed)?;
                    let metrics = metrics.of("http_connect", proxy.transport());
                    Dialer::through(Proxy::new(Protocol::HttpConnect(proxy), metrics))
                }
                Connection::Grpc { socket } => {
                    let konnectivity = Konnectivity::new(socket, metrics.konnectivity());
                    let protocol = Protocol::Konnectivity(konnectivity);
                    let metrics = metrics.of("grpc", "uds");
                    Dialer::through(Proxy::new(protocol, metrics))
                }
            };
            *selector.at(network) = Some(dialer);
        }
        Ok(selector)
    }

    /// The dialer of a network: direct if none is configured.
    pub fn dialer(&self, network: Network) -> Dialer {
        self.configured(network).unwrap_or_default()
    }

    /// The dialer that is configured for a network, direct or not.
    pub fn configured(&self, network: Network) -> Option<Dialer> {
        match network {
            Network::ControlPlane => self.control_plane.clone(),
            Network::Etcd => self.etcd.clone(),
            Network::Cluster => self.cluster.clone(),
        }
    }

    fn at(&mut self, network: Network) -> &mut Option<Dialer> {
        match network {
            Network::ControlPlane => &mut self.control_plane,
            Network::Etcd => &mut self.etcd,
            Network::Cluster => &mut self.cluster,
        }
    }
}

#[cfg(test)]
mod tests;
