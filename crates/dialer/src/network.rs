//! The networks around the server.

/// A network that the server connects to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// The servers of the control plane, such as webhooks of authentication.
    ControlPlane,
    /// etcd.
    Etcd,
    /// The network of the cluster: nodes, pods and services.
    Cluster,
}

impl Network {
    pub(crate) const ALL: [Network; 3] = [Network::ControlPlane, Network::Etcd, Network::Cluster];

    /// The name in the egress selector configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Network::ControlPlane => "controlplane",
            Network::Etcd => "etcd",
            Network::Cluster => "cluster",
        }
    }
}
