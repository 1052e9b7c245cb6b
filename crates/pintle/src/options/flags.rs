//! The flags of [`Options`], except those of the option groups, which define their own.

use super::{
    AdmissionOptions, AggregationOptions, AuditOptions, AuthenticationOptions, AuthorizationOptions,
    DebuggingOptions, EndpointReconcilerType, EtcdServersOverrides, FeatureOptions, KubeletOptions,
    LeadershipOptions, LoggingOptions, ManagementOptions, MetricsOptions, Options, PeerOptions,
    PriorityAndFairnessOptions, ServiceAccountOptions, ServingOptions, StorageBackend, TracingOptions,
    VersionFlag, WatchCache,
    arguments::{
        OutOfRange, ValueError, duration, fields, flag, integer, ip, list, port, port_range, set, set_list,
        set_nonzero, switch,
    },
};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use pintle_apiserver::registry::{StorageMediaType, UnknownStorageMediaType};
use std::{path::PathBuf, time::Duration};

impl Options {
    /// The flags, except those of the option groups.
    pub fn args() -> Vec<Arg> {
        let path = |arg: Arg| arg.value_parser(value_parser!(PathBuf));
        vec![
            flag(
                "version",
                "true|raw|vX.Y.Z",
                "Prints the version and exits; vX.Y.Z… sets the reported version",
            )
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .value_parser(str::parse::<VersionFlag>),
            path(flag("data-dir", "DIR", "Directory of the embedded store, generated certificates and admin.kubeconfig")),
            flag("storage-backend", "NAME", "Storage engine: embedded, etcd3 (with --etcd-servers) or memory")
                .value_parser(storage_backend),
            list("etcd-servers", "URL,…", "Client URLs of the etcd cluster"),
            path(flag("etcd-cafile", "FILE", "Certificate authorities of etcd's serving certificates")),
            path(flag("etcd-certfile", "FILE", "Client certificate for etcd")),
            path(flag("etcd-keyfile", "FILE", "Private key of --etcd-certfile")),
            flag("etcd-healthcheck-timeout", "DURATION", "Timeout of the health check etcd")
                .value_parser(duration),
            flag(
                "etcd-readycheck-timeout",
                "DURATION",
                "Timeout of the readiness check etcd-readiness",
            )
            .value_parser(duration),
            flag(
                "etcd-db-metric-poll-interval",
                "DURATION",
                "Interval at which the size of etcd's database is read; 0 disables it",
            )
            .value_parser(duration),
            flag("lease-reuse-duration-seconds", "N", "Time for which an etcd lease is reused for further keys, in seconds")
                .value_parser(integer::<u32>),
            flag("etcd-prefix", "PREFIX", "Prefix of all storage keys"),
            flag("etcd-compaction-interval", "DURATION", "Interval of compactions of the store; 0 disables them")
                .value_parser(duration),
            path(flag(
                "encryption-provider-config",
                "FILE",
                "File with the encryption configuration: resources and providers of encryption at rest",
            )),
            switch(
                "encryption-provider-config-automatic-reload",
                "Reloads --encryption-provider-config when it changes",
            ),
            flag("runtime-config", "KEY=VALUE,…", "API groups, versions and resources to enable or disable")
                .action(ArgAction::Append),
            flag("event-ttl", "DURATION", "Time for which events are kept; 0 for no limit").value_parser(duration),
            flag("storage-media-type", "TYPE", "Media type in which objects of built-in kinds are stored")
                .value_parser(storage_media_type),
            flag(
                "etcd-servers-overrides",
                "GROUP/RESOURCE#SERVER;…",
                "Resources that are stored in another etcd cluster",
            )
            .action(ArgAction::Append)
            .value_parser(etcd_servers_overrides),
            switch("allow-privileged", "Allows privileged containers"),
            switch("watch-cache", "Enables the watch cache"),
            flag(
                "watch-cache-sizes",
                "RESOURCE[.GROUP]#SIZE,…",
                "Watch cache settings of resources; the size 0 disables the watch cache of a resource",
            )
            .action(ArgAction::Append)
            .value_parser(watch_cache_sizes),
            flag("default-watch-cache-size", "N", "Deprecated: it has no effect")
                .value_parser(integer::<i64>),
            flag("etcd-count-metric-poll-period", "DURATION", "Exports the number of stored objects; 0 disables the metric")
                .value_parser(duration),
            flag("bind-address", "IP", "Address to listen on").value_parser(ip),
            flag("secure-port", "PORT", "Port to listen on").value_parser(port),
            flag("advertise-address", "IP", "Address at which members of the cluster reach the server")
                .value_parser(ip),
            flag(
                "endpoint-reconciler-type",
                "NAME",
                "Reconciler of the endpoints of the service kubernetes: master-count, lease or none",
            )
            .value_parser(endpoint_reconciler_type),
            flag("apiserver-count", "N", "Deprecated: the number of API servers, for the reconciler master-count")
                .value_parser(count),
            path(flag("cert-dir", "DIR", "Directory of generated certificates")),
            path(flag("tls-cert-file", "FILE", "Serving certificate")),
            path(flag("tls-private-key-file", "FILE", "Private key of the serving certificate")),
            path(flag("client-ca-file", "FILE", "Certificate authorities of client certificates")),
            path(flag("token-auth-file", "FILE", "File with static tokens")),
            path(flag(
                "egress-selector-config-file",
                "FILE",
                "File with the proxies of each network for outgoing connections",
            )),
            flag("service-cluster-ip-range", "CIDR", "CIDR range of cluster IPs of services; two ranges for dual-stack"),
            flag("service-node-port-range", "FROM-TO", "Port range of services with node ports").value_parser(port_range),
            flag("request-timeout", "DURATION", "Timeout of requests that are not long-running").value_parser(duration),
            flag("max-requests-inflight", "N", "Maximum number of concurrent reads; with priority and fairness, part of the total concurrency")
                .value_parser(integer::<usize>),
            flag("max-mutating-requests-inflight", "N", "Maximum number of concurrent writes; with priority and fairness, part of the total concurrency")
                .value_parser(integer::<usize>),
        ]
    }

    /// Reads the flags, including those of the option groups.
    pub fn read(matches: &ArgMatches) -> Options {
        let mut options = Options::default();
        let paths: [(&str, &mut Option<PathBuf>); 10] = [
            ("etcd-cafile", &mut options.etcd_cafile),
            ("etcd-certfile", &mut options.etcd_certfile),
            ("etcd-keyfile", &mut options.etcd_keyfile),
            ("cert-dir", &mut options.cert_dir),
            ("tls-cert-file", &mut options.tls_cert_file),
            ("tls-private-key-file", &mut options.tls_private_key_file),
            ("client-ca-file", &mut options.client_ca_file),
            ("token-auth-file", &mut options.token_auth_file),
            ("egress-selector-config-file", &mut options.egress_selector_config_file),
            ("encryption-provider-config", &mut options.encryption_provider_config),
        ];
        for (name, option) in paths {
            *option = matches.get_one(name).cloned();
        }
        options.service_accounts = ServiceAccountOptions::read(matches);
        set(matches, "data-dir", &mut options.data_dir);
        set_list(matches, "etcd-servers", &mut options.etcd_servers);
        set_nonzero(matches, "etcd-healthcheck-timeout", &mut options.etcd_healthcheck_timeout);
        set_nonzero(matches, "etcd-readycheck-timeout", &mut options.etcd_readycheck_timeout);
        set(matches, "etcd-db-metric-poll-interval", &mut options.etcd_db_metric_poll_interval);
        if let Some(seconds) = matches.get_one::<u32>("lease-reuse-duration-seconds") {
            options.lease_reuse = Duration::from_secs((*seconds).into());
        }
        set(matches, "etcd-prefix", &mut options.etcd_prefix);
        set(matches, "etcd-compaction-interval", &mut options.etcd_compaction_interval);
        for text in matches.get_many::<String>("runtime-config").into_iter().flatten() {
            options.runtime_config.add(text);
        }
        set(
            matches,
            "encryption-provider-config-automatic-reload",
            &mut options.encryption_provider_config_automatic_reload,
        );
        set(matches, "event-ttl", &mut options.event_ttl);
        options.features = FeatureOptions::read(matches);
        options.management = ManagementOptions::read(matches);
        options.leadership = LeadershipOptions::read(matches);
        options.debugging = DebuggingOptions::read(matches);
        options.tracing = TracingOptions::read(matches);
        set(matches, "version", &mut options.version);
        options.logging = LoggingOptions::read(matches);
        options.metrics = MetricsOptions::read(matches);
        options.storage_media_type = matches.get_one("storage-media-type").copied();
        let overrides =
            matches.get_many::<EtcdServersOverrides>("etcd-servers-overrides").into_iter().flatten();
        options.etcd_servers_overrides.0.extend(overrides.flat_map(|overrides| overrides.0.clone()));
        set(matches, "allow-privileged", &mut options.allow_privileged);
        set(matches, "watch-cache", &mut options.watch_cache.enabled);
        for sizes in matches.get_many::<WatchCache>("watch-cache-sizes").into_iter().flatten() {
            options.watch_cache.sizes.extend(sizes.sizes.clone());
        }
        set(matches, "etcd-count-metric-poll-period", &mut options.etcd_count_metric_poll_period);
        set(matches, "bind-address", &mut options.bind_address);
        set(matches, "secure-port", &mut options.secure_port);
        options.advertise_address = matches.get_one("advertise-address").copied();
        set(matches, "endpoint-reconciler-type", &mut options.endpoint_reconciler_type);
        if let Some(count) = matches.get_one::<u16>("apiserver-count") {
            options.apiserver_count = usize::from(*count);
        }
        set(matches, "service-cluster-ip-range", &mut options.service_cluster_ip_range);
        set(matches, "service-node-port-range", &mut options.service_node_port_range);
        set(matches, "request-timeout", &mut options.request_timeout);
        set(matches, "max-requests-inflight", &mut options.max_requests_inflight);
        set(matches, "max-mutating-requests-inflight", &mut options.max_mutating_requests_inflight);
        if !options.etcd_servers.is_empty() {
            options.storage_backend = StorageBackend::Etcd3;
        }
        set(matches, "storage-backend", &mut options.storage_backend);
        // The requests that are still there then are cut off one by one.
        options.shutdown_grace_period = options.request_timeout.saturating_add(Duration::from_secs(3));
        options.audit = AuditOptions::read(matches);
        options.authorization = AuthorizationOptions::read(matches);
        options.authentication = AuthenticationOptions::read(matches);
        options.serving = ServingOptions::read(matches);
        options.priority_and_fairness = PriorityAndFairnessOptions::read(matches);
        options.aggregation = AggregationOptions::read(matches);
        options.peers = PeerOptions::read(matches);
        options.kubelet = KubeletOptions::read(matches);
        options.admission = AdmissionOptions::read(matches);
        options
    }
}

/// Parses the number of servers.
fn count(text: &str) -> Result<u16, ValueError> {
    let count = integer::<i64>(text)?;
    let positive = u16::try_from(count).ok().filter(|count| *count > 0);
    let message = || format!("--apiserver-count should be a positive number, but value '{count}' provided");
    Ok(positive.ok_or_else(|| OutOfRange::Message(message()))?)
}

fn storage_backend(text: &str) -> Result<StorageBackend, OutOfRange> {
    let found = StorageBackend::ALL.iter().find(|(name, _)| *name == text);
    found.map(|(_, backend)| *backend).ok_or_else(|| {
        let names = StorageBackend::ALL.map(|(name, _)| name).join(", ");
        OutOfRange::Message(format!("--storage-backend invalid, allowed values: {names}"))
    })
}

fn endpoint_reconciler_type(text: &str) -> Result<EndpointReconcilerType, OutOfRange> {
    let found = EndpointReconcilerType::ALL.iter().find(|(name, _)| *name == text);
    let unknown = || OutOfRange::Message(format!("endpoint reconciler not implemented: {text}"));
    found.map(|(_, reconciler)| *reconciler).ok_or_else(unknown)
}

fn storage_media_type(text: &str) -> Result<StorageMediaType, OutOfRange> {
    text.parse().map_err(|error: UnknownStorageMediaType| OutOfRange::Message(error.to_string()))
}

fn etcd_servers_overrides(text: &str) -> Result<EtcdServersOverrides, ValueError> {
    let mut overrides = EtcdServersOverrides::default();
    for field in fields(text)? {
        let parsed: EtcdServersOverrides = field.parse().map_err(OutOfRange::Message)?;
        overrides.0.extend(parsed.0);
    }
    Ok(overrides)
}

fn watch_cache_sizes(text: &str) -> Result<WatchCache, ValueError> {
    let mut watch_cache = WatchCache::default();
    for field in fields(text)? {
        watch_cache.add_sizes(&field).map_err(OutOfRange::Message)?;
    }
    Ok(watch_cache)
}
