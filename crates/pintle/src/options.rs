//! The server's options, under kube-apiserver's names
//! (<https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/>).
//!
//! A group of options is a file: its type, its flags (`args`), their values (`read`), and their validation. The options
//! of no group have their flags in `flags.rs`. All are validated together in `validation.rs`.

mod admission;
mod aggregation;
mod arguments;
mod audit;
mod authentication;
mod authorization;
mod debugging;
mod features;
mod flags;
mod kubelet;
mod leadership;
mod logging;
mod management;
mod metrics;
mod oidc;
mod peers;
mod priority_and_fairness;
mod reported_version;
mod service_account;
mod serving;
pub(crate) mod storage;
mod tracing;
mod validation;

pub use admission::AdmissionOptions;
pub use aggregation::AggregationOptions;
pub use arguments::{OutOfRange, Refused};
pub use audit::{AuditDeliveryOptions, AuditLogOptions, AuditOptions, AuditWebhookOptions};
pub use authentication::{AuthenticationOptions, RequestHeaderOptions, TokenWebhookOptions};
pub use authorization::AuthorizationOptions;
pub use debugging::DebuggingOptions;
pub use features::FeatureOptions;
pub use kubelet::KubeletOptions;
pub use leadership::LeadershipOptions;
pub use logging::{LoggingOptions, StreamOptions};
pub use management::ManagementOptions;
pub use metrics::MetricsOptions;
pub use oidc::OidcOptions;
pub use peers::PeerOptions;
pub use priority_and_fairness::PriorityAndFairnessOptions;
pub use reported_version::VersionFlag;
pub use service_account::ServiceAccountOptions;
pub use serving::{ServingOptions, SniCertKey};
pub use storage::{EtcdServersOverride, EtcdServersOverrides, WatchCache};
pub use tracing::{TracingConfiguration, TracingOptions};

use crate::hostname::hostname;
use pintle_api::core::service::{PortRange, ServiceNetwork};
use pintle_apiserver::{
    base::body_budget::DEFAULT_BODY_MEMORY, registry::StorageMediaType, resource_config::RuntimeConfig,
    serving::DEFAULT_RESPONSE_MEMORY,
};
use pintle_feature_gates::Gate;
use pintle_go_forms::{Cidr, clean_path};
use pintle_logs::Levels;
use pintle_storage::EtcdOptions;
use std::{
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    time::Duration,
};

/// The storage engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StorageBackend {
    /// Files below the data directory.
    #[default]
    Embedded,
    /// An etcd cluster.
    Etcd3,
    /// Memory: objects are lost when the server ends.
    Memory,
}

impl StorageBackend {
    /// All values, by the names of the flag.
    pub const ALL: [(&str, StorageBackend); 3] = [
        ("embedded", StorageBackend::Embedded),
        ("etcd3", StorageBackend::Etcd3),
        ("memory", StorageBackend::Memory),
    ];
}

/// The reconciler of the server addresses in the endpoints of the `kubernetes` service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EndpointReconcilerType {
    /// Each server renews a lease in the store; the endpoints are the servers with a lease.
    #[default]
    Lease,
    /// Each server adds itself, up to `apiserver_count` addresses. Deprecated.
    MasterCount,
    /// The endpoints are not reconciled.
    None,
}

impl EndpointReconcilerType {
    /// All values, by the names of the flag.
    pub const ALL: [(&str, EndpointReconcilerType); 3] = [
        ("master-count", EndpointReconcilerType::MasterCount),
        ("lease", EndpointReconcilerType::Lease),
        ("none", EndpointReconcilerType::None),
    ];
}

/// All options with their defaults.
#[derive(Debug, Clone)]
pub struct Options {
    /// The name of the host, from which the server's identity is derived; `None` for that of the system. It has no flag:
    /// servers in one process that share a store need different names.
    pub hostname: Option<String>,
    /// The directory of the store, certificates and `admin.kubeconfig`.
    pub data_dir: PathBuf,
    /// The storage engine.
    pub storage_backend: StorageBackend,
    /// The client URLs of the etcd cluster's members, for [`StorageBackend::Etcd3`].
    pub etcd_servers: Vec<String>,
    /// The certificate authority of the etcd servers.
    pub etcd_cafile: Option<PathBuf>,
    /// The client certificate for etcd.
    pub etcd_certfile: Option<PathBuf>,
    /// The key of the client certificate for etcd.
    pub etcd_keyfile: Option<PathBuf>,
    /// The timeout of the health check `etcd`.
    pub etcd_healthcheck_timeout: Duration,
    /// The timeout of the health check `etcd-readiness`.
    pub etcd_readycheck_timeout: Duration,
    /// How often the size of the store is read; zero disables it.
    pub etcd_db_metric_poll_interval: Duration,
    /// How long an etcd lease is reused for further keys.
    pub lease_reuse: Duration,
    /// The prefix of all storage keys.
    pub etcd_prefix: String,
    /// Start, stop, and the time of requests.
    pub management: ManagementOptions,
    /// Coordinated leader election.
    pub leadership: LeadershipOptions,
    /// Endpoints for debugging.
    pub debugging: DebuggingOptions,
    /// Traces.
    pub tracing: TracingOptions,
    /// Prints the version, or sets the reported one.
    pub version: VersionFlag,
    /// Feature gates and the emulated version.
    pub features: FeatureOptions,
    /// The log.
    pub logging: LoggingOptions,
    /// The verbosity of the log, which can be changed while the server runs.
    pub log_levels: Levels,
    /// Metrics.
    pub metrics: MetricsOptions,
    /// The storage media type of built-in kinds; `None` is JSON in a store of the server's own, and protobuf in etcd.
    pub storage_media_type: Option<StorageMediaType>,
    /// Resources that are stored in another etcd cluster.
    pub etcd_servers_overrides: EtcdServersOverrides,
    /// The watch cache, per resource.
    pub watch_cache: WatchCache,
    /// Whether the metrics include the number of stored objects; zero disables it. The period has no other effect: the
    /// number is current at each scrape.
    pub etcd_count_metric_poll_period: Duration,
    /// The file of the encryption at rest; `None` disables it.
    pub encryption_provider_config: Option<PathBuf>,
    /// Whether that file is reloaded when it changes.
    pub encryption_provider_config_automatic_reload: bool,
    /// How often that file is checked for changes.
    pub encryption_provider_config_poll_interval: Duration,
    /// How often history is compacted; zero disables it.
    pub etcd_compaction_interval: Duration,
    /// The groups, versions and resources that are enabled and disabled.
    pub runtime_config: RuntimeConfig,
    /// How long events are kept; zero keeps them for ever.
    pub event_ttl: Duration,
    /// The address to listen on.
    pub bind_address: IpAddr,
    /// The port to listen on; 0 selects any free one.
    pub secure_port: u16,
    /// The address at which other members of the cluster reach the server; `None` selects one.
    pub advertise_address: Option<IpAddr>,
    /// The reconciler of the `kubernetes` service's endpoints.
    pub endpoint_reconciler_type: EndpointReconcilerType,
    /// The number of servers, for [`EndpointReconcilerType::MasterCount`].
    pub apiserver_count: usize,
    /// The directory of generated certificates; `None` is below the data directory.
    pub cert_dir: Option<PathBuf>,
    /// The serving certificate; `None` is a generated one.
    pub tls_cert_file: Option<PathBuf>,
    /// The key of the serving certificate.
    pub tls_private_key_file: Option<PathBuf>,
    /// The trust anchors of client certificates; `None` is the generated authority.
    pub client_ca_file: Option<PathBuf>,
    /// The file of static tokens.
    pub token_auth_file: Option<PathBuf>,
    /// The file that names the proxies through which the server reaches other networks; `None` for direct connections.
    pub egress_selector_config_file: Option<PathBuf>,
    /// The configuration of the authorizers.
    pub authorization: AuthorizationOptions,
    /// Tokens of service accounts, and bootstrap tokens.
    pub service_accounts: ServiceAccountOptions,
    /// The configuration of the other authenticators.
    pub authentication: AuthenticationOptions,
    /// The configuration of the secure port.
    pub serving: ServingOptions,
    /// The range of service addresses.
    pub service_cluster_ip_range: String,
    /// The range of node ports, such as `30000-32767`.
    pub service_node_port_range: String,
    /// The timeout of requests that are not long-running.
    pub request_timeout: Duration,
    /// Priority and fairness.
    pub priority_and_fairness: PriorityAndFairnessOptions,
    /// Aggregation.
    pub aggregation: AggregationOptions,
    /// The proxy between servers of different versions.
    pub peers: PeerOptions,
    /// How kubelets are reached.
    pub kubelet: KubeletOptions,
    /// Admission plugins.
    pub admission: AdmissionOptions,
    /// Whether containers may be privileged. False holds for all servers of the process.
    pub allow_privileged: bool,
    /// The maximum of reads in flight; with priority and fairness, a summand of the total concurrency.
    pub max_requests_inflight: usize,
    /// The maximum of writes in flight; with priority and fairness, a summand of the total concurrency.
    pub max_mutating_requests_inflight: usize,
    /// The memory budget of all decoded request bodies in flight, in bytes; above it requests get 429.
    pub request_body_memory: usize,
    /// The memory budget of all unsent responses, in bytes; above it slow clients are cut off.
    pub response_memory: usize,
    /// The maximum of open connections; `None` derives it from the process's file descriptors and memory.
    pub max_connections: Option<usize>,
    /// The maximum of long-running requests; `None` derives it from the memory.
    pub max_long_running: Option<usize>,
    /// The configuration of audit logging.
    pub audit: AuditOptions,
    /// How long requests in flight may take at shutdown.
    pub shutdown_grace_period: Duration,
    /// The messages of flags whose values were refused.
    pub refused: Refused,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            hostname: None,
            data_dir: PathBuf::from("pintle-data"),
            storage_backend: StorageBackend::Embedded,
            etcd_servers: Vec::new(),
            etcd_cafile: None,
            etcd_certfile: None,
            etcd_keyfile: None,
            etcd_healthcheck_timeout: Duration::from_secs(2),
            etcd_readycheck_timeout: Duration::from_secs(2),
            etcd_db_metric_poll_interval: Duration::from_secs(30),
            lease_reuse: Duration::from_secs(60),
            etcd_prefix: "/registry".to_owned(),
            management: ManagementOptions::default(),
            leadership: LeadershipOptions::default(),
            debugging: DebuggingOptions::default(),
            tracing: TracingOptions::default(),
            version: VersionFlag::default(),
            features: FeatureOptions::default(),
            logging: LoggingOptions::default(),
            log_levels: Levels::default(),
            metrics: MetricsOptions::default(),
            storage_media_type: None,
            etcd_servers_overrides: EtcdServersOverrides::default(),
            watch_cache: WatchCache::default(),
            etcd_count_metric_poll_period: Duration::from_secs(60),
            encryption_provider_config: None,
            encryption_provider_config_automatic_reload: false,
            encryption_provider_config_poll_interval: Duration::from_secs(60),
            etcd_compaction_interval: Duration::from_secs(300),
            runtime_config: RuntimeConfig::default(),
            event_ttl: Duration::from_secs(3600),
            bind_address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            secure_port: 6443,
            advertise_address: None,
            endpoint_reconciler_type: EndpointReconcilerType::default(),
            apiserver_count: 1,
            cert_dir: None,
            tls_cert_file: None,
            tls_private_key_file: None,
            client_ca_file: None,
            token_auth_file: None,
            egress_selector_config_file: None,
            authorization: AuthorizationOptions::default(),
            service_accounts: ServiceAccountOptions::default(),
            authentication: AuthenticationOptions::default(),
            serving: ServingOptions::default(),
            service_cluster_ip_range: "10.0.0.0/24".to_owned(),
            service_node_port_range: "30000-32767".to_owned(),
            request_timeout: Duration::from_secs(60),
            priority_and_fairness: PriorityAndFairnessOptions::default(),
            aggregation: AggregationOptions::default(),
            peers: PeerOptions::default(),
            kubelet: KubeletOptions::default(),
            admission: AdmissionOptions::default(),
            allow_privileged: true,
            max_requests_inflight: 400,
            max_mutating_requests_inflight: 200,
            request_body_memory: DEFAULT_BODY_MEMORY,
            response_memory: DEFAULT_RESPONSE_MEMORY,
            max_connections: None,
            max_long_running: None,
            audit: AuditOptions::default(),
            shutdown_grace_period: Duration::from_secs(60),
            refused: Refused::default(),
        }
    }
}

impl Options {
    /// The address that the server publishes: the configured one, the bind address, or the source address of the
    /// default route.
    pub fn advertised(&self) -> IpAddr {
        if let Some(address) = self.advertise_address {
            return address;
        }
        if !self.bind_address.is_unspecified() {
            return self.bind_address;
        }
        // Connecting a datagram socket sends nothing; the kernel only selects the source address.
        let route = std::net::UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
            socket.connect("192.0.2.1:9")?;
            socket.local_addr()
        });
        match route {
            Ok(address) => address.ip(),
            Err(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }

    /// The name of the host, from which the server's identity is derived.
    pub(crate) fn hostname(&self) -> String {
        self.hostname.clone().unwrap_or_else(hostname)
    }

    /// The identity of the server among those of a cluster; empty if servers have none.
    pub(crate) fn identity(&self) -> String {
        match self.features.is_open(Gate::APIServerIdentity) {
            true => pintle_controlplane::identity(&self.hostname()),
            false => String::new(),
        }
    }

    /// The prefix of all storage keys: an absolute path, whether `--etcd-prefix` begins with a slash or not. It ends in a
    /// slash, so that another cluster's longer prefix does not match.
    pub fn key_prefix(&self) -> String {
        let path = clean_path(&format!("/{}", self.etcd_prefix));
        format!("{}/", path.trim_end_matches('/'))
    }

    /// The etcd options; `None` when the storage engine is not etcd.
    pub fn etcd(&self) -> Option<EtcdOptions> {
        (self.storage_backend == StorageBackend::Etcd3).then(|| self.etcd_cluster(&self.etcd_servers))
    }

    /// The errors of the etcd options, which contradict each other or the storage engine.
    pub(crate) fn etcd_errors(&self) -> Vec<String> {
        if self.storage_backend == StorageBackend::Etcd3 && self.etcd_servers.is_empty() {
            return vec!["--etcd-servers must be specified".to_owned()];
        }
        // Overridden resources are stored in etcd all the same.
        let has_etcd =
            self.storage_backend == StorageBackend::Etcd3 || !self.etcd_servers_overrides.0.is_empty();
        if has_etcd && self.etcd_certfile.is_some() != self.etcd_keyfile.is_some() {
            return vec!["--etcd-certfile and --etcd-keyfile must be specified together".to_owned()];
        }
        let given = [
            ("--etcd-cafile", !has_etcd && self.etcd_cafile.is_some()),
            ("--etcd-certfile", !has_etcd && self.etcd_certfile.is_some()),
            ("--etcd-keyfile", !has_etcd && self.etcd_keyfile.is_some()),
            (
                "--etcd-servers",
                self.storage_backend != StorageBackend::Etcd3 && !self.etcd_servers.is_empty(),
            ),
        ];
        let given = given.into_iter().filter(|(_, is_given)| *is_given);
        given.map(|(flag, _)| format!("{flag} is for --storage-backend=etcd3 only")).collect()
    }

    /// The options of the etcd cluster at these servers.
    pub(crate) fn etcd_cluster(&self, servers: &[String]) -> EtcdOptions {
        let mut options = EtcdOptions::new(servers, self.key_prefix());
        options.ca_file.clone_from(&self.etcd_cafile);
        options.cert_file.clone_from(&self.etcd_certfile);
        options.key_file.clone_from(&self.etcd_keyfile);
        options.lease_reuse = self.lease_reuse;
        options
    }

    /// The address ranges of services.
    ///
    /// # Errors
    /// When a range is malformed or too small, in kube-apiserver's words.
    fn service_cidrs(&self) -> Result<Vec<Cidr>, String> {
        let ranges = self.service_cluster_ip_range.split(',');
        let cidr = |(index, range): (usize, &str)| {
            let problem = if index == 0 { "is not a valid cidr" } else { "is not an ip net" };
            Cidr::parse_sloppy(range.trim())
                .ok_or_else(|| format!("service-cluster-ip-range[{index}] {problem}"))
        };
        let cidrs = ranges.enumerate().map(cidr).collect::<Result<Vec<Cidr>, String>>()?;
        let primary = cidrs.iter().take(1).copied().collect();
        match ServiceNetwork::new(primary, ServiceNetwork::default().node_ports()) {
            Ok(_) => Ok(cidrs),
            Err(error) => {
                Err(format!("error determining service IP ranges for primary service cidr: {error}"))
            }
        }
    }

    /// The errors of the address ranges of services together.
    fn service_cidr_errors(&self) -> Vec<String> {
        let cidrs = self.service_cidrs().unwrap_or_default();
        let mut errors = Vec::new();
        if cidrs.len() > 2 {
            errors.push("--service-cluster-ip-range must not contain more than two entries");
        }
        if let [first, second, ..] = cidrs.as_slice()
            && first.network().is_ipv4() == second.network().is_ipv4()
        {
            errors.push("--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family");
        }
        errors.into_iter().map(str::to_owned).collect()
    }

    /// The error of the family of the first range. The service `kubernetes` has an address of it, and the server's own
    /// address as its endpoint.
    fn family_error(&self) -> Option<String> {
        let (cidrs, address) = (self.service_cidrs().unwrap_or_default(), self.advertise_address?);
        let range = cidrs.first()?;
        let is_reconciled = self.endpoint_reconciler_type != EndpointReconcilerType::None;
        (is_reconciled && range.network().is_ipv4() != address.is_ipv4()).then(|| {
            format!("service IP family \"{}\" must match public address family \"{address}\"", range.masked())
        })
    }

    /// The address ranges and node ports of services.
    ///
    /// # Errors
    /// When a range is malformed.
    pub fn service_network(&self) -> Result<ServiceNetwork, String> {
        let ports = self.service_node_port_range.parse::<PortRange>();
        let ports = ports.map_err(|error| format!("--service-node-port-range: {error}"))?;
        let network = ServiceNetwork::new(self.service_cidrs()?, ports);
        network.map_err(|error| format!("--service-cluster-ip-range: {error}"))
    }

    /// The directory of generated certificates.
    pub fn certificates_dir(&self) -> PathBuf {
        self.cert_dir.clone().unwrap_or_else(|| self.data_dir.join("certs"))
    }
}
