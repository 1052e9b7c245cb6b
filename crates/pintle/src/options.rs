//! What a server is told, under kube-apiserver's names
//! (<https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/>).

use crate::{
    AdmissionOptions, AuditOptions, AuthenticationOptions, AuthorizationOptions, EtcdServersOverrides,
    FeatureGates, PriorityAndFairnessOptions, ServiceAccountOptions, ServingOptions, WatchCache,
};
use pintle_api::core::service::{PortRange, ServiceNetwork};
use pintle_apiserver::{
    body_budget::DEFAULT_BODY_MEMORY, registry::StorageMediaType, resource_config::RuntimeConfig,
    response_budget::DEFAULT_RESPONSE_MEMORY,
};
use pintle_machinery::validation::Cidr;
use pintle_storage::EtcdOptions;
use std::{
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    time::Duration,
};

/// Where objects are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StorageBackend {
    /// In files below the data directory.
    #[default]
    Embedded,
    /// In an etcd cluster.
    Etcd3,
    /// Nowhere: gone when the server ends.
    Memory,
}

/// Who puts the addresses of the servers behind the `kubernetes` service, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EndpointReconcilerType {
    /// Each server renews a lease in the store; those with a lease are behind the service.
    #[default]
    Lease,
    /// Each server adds itself, up to a number. Deprecated.
    MasterCount,
    /// No server does.
    None,
}

impl EndpointReconcilerType {
    /// All, by the names of the flag's values.
    pub const ALL: [(&str, EndpointReconcilerType); 3] = [
        ("master-count", EndpointReconcilerType::MasterCount),
        ("lease", EndpointReconcilerType::Lease),
        ("none", EndpointReconcilerType::None),
    ];
}

/// All options with their defaults.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the store, certificates and `admin.kubeconfig` are.
    pub data_dir: PathBuf,
    /// Where objects are kept.
    pub storage_backend: StorageBackend,
    /// The client URLs of the etcd cluster's members, for [`StorageBackend::Etcd3`].
    pub etcd_servers: Vec<String>,
    /// The authority of the etcd servers' certificates.
    pub etcd_cafile: Option<PathBuf>,
    /// The certificate shown to etcd.
    pub etcd_certfile: Option<PathBuf>,
    /// The key of that certificate.
    pub etcd_keyfile: Option<PathBuf>,
    /// How long etcd may take to answer the check `etcd`.
    pub etcd_healthcheck_timeout: Duration,
    /// How long etcd may take to answer the check `etcd-readiness`.
    pub etcd_readycheck_timeout: Duration,
    /// How often the store is asked for its size; zero is never.
    pub etcd_db_metric_poll_interval: Duration,
    /// For how long an etcd lease is given to further keys.
    pub lease_reuse: Duration,
    /// The prefix of all storage keys.
    pub etcd_prefix: String,
    /// What is switched on or off besides.
    pub feature_gates: FeatureGates,
    /// The media type in which built-in kinds are stored; `None` is JSON in a store of the server's own, and protobuf in
    /// etcd.
    pub storage_media_type: Option<StorageMediaType>,
    /// Resources that are stored in another etcd.
    pub etcd_servers_overrides: EtcdServersOverrides,
    /// Whether resources have a watch cache.
    pub watch_cache: WatchCache,
    /// Whether and how often stored objects are counted for the metrics; zero is never. Counting costs nothing here: the
    /// count is always that of the moment.
    pub etcd_count_metric_poll_period: Duration,
    /// Which resources are encrypted at rest, and how; `None` is none.
    pub encryption_provider_config: Option<PathBuf>,
    /// Whether that file is read again when it changes.
    pub encryption_provider_config_automatic_reload: bool,
    /// How often it is looked at for changes.
    pub encryption_provider_config_poll_interval: Duration,
    /// How often history is compacted; zero is never.
    pub etcd_compaction_interval: Duration,
    /// Which groups, versions and resources are switched on and off.
    pub runtime_config: RuntimeConfig,
    /// For how long events are kept; zero is for ever.
    pub event_ttl: Duration,
    /// The address to listen on.
    pub bind_address: IpAddr,
    /// The port to listen on; 0 is any free one.
    pub secure_port: u16,
    /// The address that other members of the cluster reach the server at; `None` is a guess.
    pub advertise_address: Option<IpAddr>,
    /// Who is behind the `kubernetes` service.
    pub endpoint_reconciler_type: EndpointReconcilerType,
    /// How many servers there are, for [`EndpointReconcilerType::MasterCount`].
    pub apiserver_count: usize,
    /// Where generated certificates go; `None` is below the data directory.
    pub cert_dir: Option<PathBuf>,
    /// The serving certificate; `None` is a generated one.
    pub tls_cert_file: Option<PathBuf>,
    /// The key of the serving certificate.
    pub tls_private_key_file: Option<PathBuf>,
    /// Whose client certificates are believed; `None` is the generated authority's.
    pub client_ca_file: Option<PathBuf>,
    /// Static tokens.
    pub token_auth_file: Option<PathBuf>,
    /// Who decides what users may do.
    pub authorization: AuthorizationOptions,
    /// Tokens of service accounts and of nodes that join.
    pub service_accounts: ServiceAccountOptions,
    /// Who else is believed to be who they say.
    pub authentication: AuthenticationOptions,
    /// How the port is served.
    pub serving: ServingOptions,
    /// The range of service addresses.
    pub service_cluster_ip_range: String,
    /// The range of node ports, as `30000-32767`.
    pub service_node_port_range: String,
    /// How long a request may take that is not long-running.
    pub request_timeout: Duration,
    /// Whether and how requests share the server.
    pub priority_and_fairness: PriorityAndFairnessOptions,
    /// Admission plugins.
    pub admission: AdmissionOptions,
    /// How many reads may be in flight; with priority and fairness, a summand of how many requests may be.
    pub max_requests_inflight: usize,
    /// The same of writes.
    pub max_mutating_requests_inflight: usize,
    /// How much memory the bodies of all requests in flight may take, decoded, in bytes; more are told to come again.
    pub request_body_memory: usize,
    /// How much memory all responses may take that are not sent yet, in bytes; beyond it, slow clients are cut off.
    pub response_memory: usize,
    /// How many connections there may be; `None` is as many as the process has file descriptors and memory for.
    pub max_connections: Option<usize>,
    /// What is told of requests, and to whom.
    pub audit: AuditOptions,
    /// How long open requests may take when the server ends.
    pub shutdown_grace_period: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
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
            feature_gates: FeatureGates::default(),
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
            authorization: AuthorizationOptions::default(),
            service_accounts: ServiceAccountOptions::default(),
            authentication: AuthenticationOptions::default(),
            serving: ServingOptions::default(),
            service_cluster_ip_range: "10.0.0.0/24".to_owned(),
            service_node_port_range: "30000-32767".to_owned(),
            request_timeout: Duration::from_secs(60),
            priority_and_fairness: PriorityAndFairnessOptions::default(),
            admission: AdmissionOptions::default(),
            max_requests_inflight: 400,
            max_mutating_requests_inflight: 200,
            request_body_memory: DEFAULT_BODY_MEMORY,
            response_memory: DEFAULT_RESPONSE_MEMORY,
            max_connections: None,
            audit: AuditOptions::default(),
            shutdown_grace_period: Duration::from_secs(60),
        }
    }
}

impl Options {
    /// The address that clients elsewhere are told: the given one, the one listened on, or that of the default route.
    pub fn advertised(&self) -> IpAddr {
        if let Some(address) = self.advertise_address {
            return address;
        }
        if !self.bind_address.is_unspecified() {
            return self.bind_address;
        }
        // Connecting a datagram socket sends nothing; it only asks the kernel which address it would use.
        let route = std::net::UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
            socket.connect("192.0.2.1:9")?;
            socket.local_addr()
        });
        match route {
            Ok(address) => address.ip(),
            Err(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }

    /// What all storage keys begin with. It ends in a slash: keys of a cluster whose prefix only begins alike are not
    /// ours.
    pub fn key_prefix(&self) -> String {
        match self.etcd_prefix.trim_matches('/') {
            "" => "/".to_owned(),
            prefix => format!("/{prefix}/"),
        }
    }

    /// The etcd cluster, if that is where objects are kept.
    ///
    /// # Errors
    /// When what is said of etcd does not fit together or with the backend.
    pub fn etcd(&self) -> Result<Option<EtcdOptions>, String> {
        let files = [
            ("--etcd-cafile", &self.etcd_cafile),
            ("--etcd-certfile", &self.etcd_certfile),
            ("--etcd-keyfile", &self.etcd_keyfile),
        ];
        if self.storage_backend != StorageBackend::Etcd3 {
            // Overridden resources are in etcd all the same.
            let has_etcd = !self.etcd_servers_overrides.0.is_empty();
            let given = files.iter().find(|(_, file)| file.is_some() && !has_etcd).map(|(flag, _)| *flag);
            let given = given.or((!self.etcd_servers.is_empty()).then_some("--etcd-servers"));
            return match given {
                Some(flag) => Err(format!("{flag} is for --storage-backend=etcd3 only")),
                None => Ok(None),
            };
        }
        if self.etcd_servers.is_empty() {
            return Err("--etcd-servers must be specified".to_owned());
        }
        self.etcd_cluster(&self.etcd_servers).map(Some)
    }

    /// The etcd cluster at these servers.
    ///
    /// # Errors
    /// When what is said of etcd does not fit together.
    pub(crate) fn etcd_cluster(&self, servers: &[String]) -> Result<EtcdOptions, String> {
        if self.etcd_certfile.is_some() != self.etcd_keyfile.is_some() {
            return Err("--etcd-certfile and --etcd-keyfile must be specified together".to_owned());
        }
        let mut options = EtcdOptions::new(servers, self.key_prefix());
        options.ca_file.clone_from(&self.etcd_cafile);
        options.cert_file.clone_from(&self.etcd_certfile);
        options.key_file.clone_from(&self.etcd_keyfile);
        options.lease_reuse = self.lease_reuse;
        Ok(options)
    }

    /// Where services get addresses and ports from.
    ///
    /// # Errors
    /// When a range is malformed.
    pub fn service_network(&self) -> Result<ServiceNetwork, String> {
        let ranges = self.service_cluster_ip_range.split(',');
        let cidrs: Option<Vec<Cidr>> = ranges.map(|range| Cidr::parse_sloppy(range.trim())).collect();
        let cidrs = cidrs.ok_or_else(|| {
            format!("--service-cluster-ip-range: {} is no list of CIDRs", self.service_cluster_ip_range)
        })?;
        let ports = self.service_node_port_range.parse::<PortRange>();
        let ports = ports.map_err(|error| format!("--service-node-port-range: {error}"))?;
        ServiceNetwork::new(cidrs, ports).map_err(|error| format!("--service-cluster-ip-range: {error}"))
    }

    /// Where generated certificates are.
    pub fn certificates_dir(&self) -> PathBuf {
        self.cert_dir.clone().unwrap_or_else(|| self.data_dir.join("certs"))
    }
}
