//! The configuration of a server: its options are validated, and the files that they name are loaded.

use crate::{
    Options,
    admission::Admission,
    aggregation::Aggregation,
    authorization::Authorization,
    certificates::{Certificates, configure_front_proxy, configure_kubelet_client},
    egress::Egress,
    encryption::EncryptionAtRest,
    kubelets::Kubelets,
    peers::Peers,
    run_error::RunError,
    secure_serving::SecureServing,
    tokens::Tokens,
};
use pintle_api::core::{pod_spec::refuse_privileged_containers, service::ServiceNetwork};
use pintle_apiserver::filters::TransportFilters;
use pintle_audit::{AuditMetrics, Auditor};
use pintle_dialer::Network;
use pintle_feature_gates::FeatureGates;
use std::{net::SocketAddr, sync::Arc};
use tokio::net::TcpListener;

/// A configuration that is valid by itself. [`Config::complete`] adds the parts that all servers share.
pub(crate) struct Config {
    pub(crate) options: Options,
    /// The feature gates in force.
    pub(crate) gates: FeatureGates,
    pub(crate) egress: Egress,
    /// The network from which services get addresses and ports.
    pub(crate) service_network: Arc<ServiceNetwork>,
    pub(crate) audit_metrics: AuditMetrics,
    /// `None` without an audit policy.
    pub(crate) auditor: Option<Arc<Auditor>>,
    pub(crate) certificates: Certificates,
    pub(crate) tokens: Tokens,
    pub(crate) secure_serving: Arc<SecureServing>,
    pub(crate) transport: TransportFilters,
    pub(crate) authorization: Authorization,
    pub(crate) aggregation: Aggregation,
    pub(crate) peers: Peers,
    pub(crate) admission: Admission,
    pub(crate) kubelets: Kubelets,
    pub(crate) encryption: EncryptionAtRest,
    /// The address that the server listens on.
    pub(crate) address: SocketAddr,
}

impl Config {
    /// Applies valid options, and listens on the port. Connections wait until the server serves them.
    pub(crate) async fn new(
        mut options: Options,
        gates: FeatureGates,
        egress: Egress,
    ) -> Result<(Config, TcpListener), RunError> {
        let service_network = Arc::new(options.service_network().map_err(RunError::Options)?);
        let control_plane = egress.selector.dialer(Network::ControlPlane);
        configure_front_proxy(&mut options)?;
        configure_kubelet_client(&mut options)?;
        let certificates = Certificates::load_or_make(&options, service_network.api_server_address())?;
        let tokens = Tokens::load(&options).await?;
        let secure_serving = Arc::new(SecureServing::load(&options, &certificates)?);
        let transport = options.serving.transport_filters().map_err(RunError::Options)?;
        let authorization = Authorization::load(&options, control_plane.clone())?;
        let audit_metrics = AuditMetrics::new()?;
        let auditor = options.audit.auditor(&audit_metrics, &control_plane).map_err(RunError::Options)?;
        if !options.allow_privileged {
            refuse_privileged_containers();
        }
        let aggregation = Aggregation::load(&options, &egress.selector)?;
        let peers = Peers::load(&options, &aggregation, &egress.selector)?;
        let admission = Admission::load(&options, &authorization, &aggregation.outbound)?;
        let kubelets = Kubelets::load(&options, egress.selector.dialer(Network::Cluster))?;
        let encryption = EncryptionAtRest::load(&options).await?;
        let address = SocketAddr::new(options.bind_address, options.secure_port);
        let listen = |source| RunError::Listen { address, source };
        let listener = options.serving.listen(address).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        aggregation.set_address(address);
        let config = Config {
            options,
            gates,
            egress,
            service_network,
            audit_metrics,
            auditor,
            certificates,
            tokens,
            secure_serving,
            transport,
            authorization,
            aggregation,
            peers,
            admission,
            kubelets,
            encryption,
            address,
        };
        Ok((config, listener))
    }
}
