//! Parses the command line.

use crate::snapshot::{self, SnapshotCommand};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use pintle::{
    AdmissionOptions, AuditOptions, AuthenticationOptions, AuthorizationOptions, EndpointReconcilerType,
    EtcdServersOverrides, FeatureGates, Options, PriorityAndFairnessOptions, ServiceAccountOptions,
    ServingOptions, StorageBackend, StorageMediaType, WatchCache,
};
use pintle_go_forms::parse_duration;
use std::{net::IpAddr, path::PathBuf, time::Duration};

/// The command that the command line selects.
pub(crate) enum Invocation {
    /// Run the server.
    Serve(Box<Flags>),
    /// Run a snapshot command.
    Snapshot(SnapshotCommand),
}

/// The server's parsed flags.
pub(crate) struct Flags {
    pub(crate) options: Options,
    /// Warnings to log once the logger runs.
    pub(crate) warnings: Vec<String>,
    verbosity: u8,
}

impl Flags {
    /// The filter of log lines for the verbosity.
    pub(crate) fn log_filter(&self) -> &'static str {
        match self.verbosity {
            0..=1 => "info",
            2..=4 => "pintle=debug,pintle_apiserver=debug,info",
            _ => "debug",
        }
    }
}

/// Parses the command line; prints help or an error and exits when there is no command to run.
pub(crate) fn parse() -> Invocation {
    let matches = command().get_matches();
    match matches.subcommand_matches("snapshot").and_then(snapshot::read) {
        Some(command) => Invocation::Snapshot(command),
        None => Invocation::Serve(Box::new(read(&matches))),
    }
}

fn command() -> Command {
    let flag = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let path = |arg: Arg| arg.value_parser(value_parser!(PathBuf));
    Command::new("pintle")
        .version(env!("CARGO_PKG_VERSION"))
        .about("The Kubernetes API server in one small binary")
        .args_conflicts_with_subcommands(true)
        .disable_help_subcommand(true)
        .subcommand(snapshot::command())
        .args(AuthenticationOptions::args())
        .args(ServingOptions::args())
        .args(ServiceAccountOptions::args())
        .args(PriorityAndFairnessOptions::args())
        .args(AdmissionOptions::args())
        .args([
            path(flag("data-dir", "DIR", "where the store, certificates and admin.kubeconfig are")),
            flag("storage-backend", "NAME", "embedded, etcd3 (with --etcd-servers) or memory")
                .value_parser(["embedded", "etcd3", "memory"]),
            flag("etcd-servers", "URL,…", "the etcd cluster in which everything is kept")
                .action(ArgAction::Append)
                .value_delimiter(','),
            path(flag("etcd-cafile", "FILE", "the authority of etcd's certificates")),
            path(flag("etcd-certfile", "FILE", "the certificate shown to etcd")),
            path(flag("etcd-keyfile", "FILE", "the key of that certificate")),
            flag("etcd-healthcheck-timeout", "DURATION", "how long etcd may take to answer the check etcd")
                .value_parser(duration),
            flag(
                "etcd-readycheck-timeout",
                "DURATION",
                "how long etcd may take to answer the check etcd-readiness",
            )
            .value_parser(duration),
            flag(
                "etcd-db-metric-poll-interval",
                "DURATION",
                "how often etcd is asked for its size; 0 is never",
            )
            .value_parser(duration),
            flag("lease-reuse-duration-seconds", "N", "for how long an etcd lease is given to further keys")
                .value_parser(value_parser!(u32)),
            flag("etcd-prefix", "PREFIX", "the prefix of all storage keys"),
            flag("etcd-compaction-interval", "DURATION", "how often history is compacted; 0 is never")
                .value_parser(duration),
            path(flag(
                "encryption-provider-config",
                "FILE",
                "which resources are encrypted at rest, and how",
            )),
            flag(
                "encryption-provider-config-automatic-reload",
                "BOOL",
                "whether that file is read again when it changes",
            )
            .value_parser(value_parser!(bool))
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
            flag("runtime-config", "KEY=VALUE,…", "groups, versions and resources to switch on and off")
                .action(ArgAction::Append),
            flag("event-ttl", "DURATION", "how long events are kept; 0 is for ever").value_parser(duration),
            flag("feature-gates", "NAME=BOOL,…", "features to switch on or off")
                .value_parser(str::parse::<FeatureGates>),
            flag("storage-media-type", "TYPE", "how built-in kinds are stored")
                .value_parser(str::parse::<StorageMediaType>),
            flag(
                "etcd-servers-overrides",
                "GROUP/RESOURCE#SERVER;…",
                "resources that are stored in another etcd",
            )
            .action(ArgAction::Append)
            .value_parser(str::parse::<EtcdServersOverrides>),
            switch("watch-cache", "whether reads may come from the watch cache"),
            flag(
                "watch-cache-sizes",
                "RESOURCE[.GROUP]#SIZE,…",
                "resources without a watch cache have the size 0",
            )
            .action(ArgAction::Append)
            .value_parser(watch_cache_sizes),
            flag("default-watch-cache-size", "N", "deprecated: it has no effect")
                .value_parser(value_parser!(i64)),
            flag("etcd-count-metric-poll-period", "DURATION", "whether objects are counted; 0 is no")
                .value_parser(duration),
            flag("bind-address", "IP", "the address to listen on").value_parser(value_parser!(IpAddr)),
            flag("secure-port", "PORT", "the port to listen on").value_parser(value_parser!(u16)),
            flag("advertise-address", "IP", "the address that members of the cluster reach the server at")
                .value_parser(value_parser!(IpAddr)),
            flag(
                "endpoint-reconciler-type",
                "NAME",
                "how servers that share a store tell which of them live",
            )
            .value_parser(EndpointReconcilerType::ALL.map(|(name, _)| name)),
            flag("apiserver-count", "N", "how many servers master-count counts on (deprecated)")
                .value_parser(value_parser!(u16).range(1..)),
            path(flag("cert-dir", "DIR", "where generated certificates go")),
            path(flag("tls-cert-file", "FILE", "the serving certificate")),
            path(flag("tls-private-key-file", "FILE", "the key of the serving certificate")),
            path(flag("client-ca-file", "FILE", "whose client certificates are believed")),
            path(flag("token-auth-file", "FILE", "static tokens")),
            flag("service-cluster-ip-range", "CIDR", "the range of service addresses"),
            flag("service-node-port-range", "FROM-TO", "the range of node ports"),
            flag("request-timeout", "DURATION", "how long a request may take").value_parser(duration),
            flag("max-requests-inflight", "N", "how many reads may be in flight")
                .value_parser(value_parser!(usize)),
            flag("max-mutating-requests-inflight", "N", "how many writes may be in flight")
                .value_parser(value_parser!(usize)),
            flag("v", "N", "how much is logged").short('v').value_parser(value_parser!(u8)),
        ])
        .args(AuditOptions::args())
        .args(AuthorizationOptions::args())
}

/// A boolean flag; without a value it is true.
fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name("BOOL")
        .help(help)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .value_parser(boolean)
}

fn read(matches: &ArgMatches) -> Flags {
    let mut options = Options::default();
    let mut warnings = Vec::new();
    let paths: [(&str, &mut Option<PathBuf>); 9] = [
        ("etcd-cafile", &mut options.etcd_cafile),
        ("etcd-certfile", &mut options.etcd_certfile),
        ("etcd-keyfile", &mut options.etcd_keyfile),
        ("cert-dir", &mut options.cert_dir),
        ("tls-cert-file", &mut options.tls_cert_file),
        ("tls-private-key-file", &mut options.tls_private_key_file),
        ("client-ca-file", &mut options.client_ca_file),
        ("token-auth-file", &mut options.token_auth_file),
        ("encryption-provider-config", &mut options.encryption_provider_config),
    ];
    for (name, option) in paths {
        *option = matches.get_one(name).cloned();
    }
    options.service_accounts = ServiceAccountOptions::read(matches);
    set(matches, "data-dir", &mut options.data_dir);
    options.etcd_servers = matches.get_many("etcd-servers").into_iter().flatten().cloned().collect();
    set(matches, "etcd-healthcheck-timeout", &mut options.etcd_healthcheck_timeout);
    set(matches, "etcd-readycheck-timeout", &mut options.etcd_readycheck_timeout);
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
    set(matches, "feature-gates", &mut options.feature_gates);
    options.storage_media_type = matches.get_one("storage-media-type").copied();
    let overrides = matches.get_many::<EtcdServersOverrides>("etcd-servers-overrides").into_iter().flatten();
    options.etcd_servers_overrides.0.extend(overrides.flat_map(|overrides| overrides.0.clone()));
    set(matches, "watch-cache", &mut options.watch_cache.enabled);
    for sizes in matches.get_many::<WatchCache>("watch-cache-sizes").into_iter().flatten() {
        options.watch_cache.sizes.extend(sizes.sizes.clone());
    }
    if matches.contains_id("default-watch-cache-size") {
        warnings.push(
            "Flag --default-watch-cache-size has been deprecated, watch caches are sized automatically and this flag \
             will be removed in a future version"
                .to_owned(),
        );
    }
    set(matches, "etcd-count-metric-poll-period", &mut options.etcd_count_metric_poll_period);
    set(matches, "bind-address", &mut options.bind_address);
    set(matches, "secure-port", &mut options.secure_port);
    options.advertise_address = matches.get_one("advertise-address").copied();
    let by_name = |(name, _): &&(&str, _)| {
        matches.get_one::<String>("endpoint-reconciler-type").is_some_and(|wanted| wanted == name)
    };
    if let Some((_, reconciler)) = EndpointReconcilerType::ALL.iter().find(by_name) {
        options.endpoint_reconciler_type = *reconciler;
    }
    if let Some(count) = matches.get_one::<u16>("apiserver-count") {
        options.apiserver_count = usize::from(*count);
    }
    set(matches, "service-cluster-ip-range", &mut options.service_cluster_ip_range);
    set(matches, "service-node-port-range", &mut options.service_node_port_range);
    set(matches, "request-timeout", &mut options.request_timeout);
    set(matches, "max-requests-inflight", &mut options.max_requests_inflight);
    set(matches, "max-mutating-requests-inflight", &mut options.max_mutating_requests_inflight);
    options.storage_backend = match matches.get_one::<String>("storage-backend").map(String::as_str) {
        Some("memory") => StorageBackend::Memory,
        Some("etcd3") => StorageBackend::Etcd3,
        None if !options.etcd_servers.is_empty() => StorageBackend::Etcd3,
        _ => StorageBackend::Embedded,
    };
    options.audit = AuditOptions::read(matches);
    options.authorization = AuthorizationOptions::read(matches);
    options.authentication = AuthenticationOptions::read(matches);
    options.serving = ServingOptions::read(matches);
    options.priority_and_fairness = PriorityAndFairnessOptions::read(matches);
    options.admission = AdmissionOptions::read(matches);
    Flags { options, warnings, verbosity: matches.get_one("v").copied().unwrap_or_default() }
}

fn set<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str, option: &mut T) {
    if let Some(value) = matches.get_one::<T>(name) {
        *option = value.clone();
    }
}

/// Parses a boolean as Go does.
fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("strconv.ParseBool: parsing \"{text}\": invalid syntax")),
    }
}

fn watch_cache_sizes(text: &str) -> Result<WatchCache, String> {
    let mut watch_cache = WatchCache::default();
    watch_cache.add_sizes(text).map(|()| watch_cache)
}

/// Parses a duration in Go's format.
fn duration(text: &str) -> Result<Duration, String> {
    let nanoseconds = parse_duration(text)?;
    u64::try_from(nanoseconds).map(Duration::from_nanos).map_err(|_| "a duration is not negative".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_of_kube_apiserver() {
        let flags = read(&command().get_matches_from([
            "pintle",
            "--secure-port=1234",
            "--request-timeout=1m30s",
            "--service-cluster-ip-range",
            "10.9.0.0/16",
            "--storage-backend=memory",
            "--endpoint-reconciler-type=master-count",
            "--apiserver-count=3",
            "--runtime-config=api/beta=true",
            "--runtime-config=apps/v1/deployments=false",
            "--event-ttl=90m",
            "--encryption-provider-config=/etc/encryption.yaml",
            "--encryption-provider-config-automatic-reload",
        ]));
        assert_eq!(flags.options.secure_port, 1234);
        assert_eq!(flags.options.request_timeout, Duration::from_secs(90));
        assert_eq!(flags.options.service_cluster_ip_range, "10.9.0.0/16");
        assert_eq!(flags.options.storage_backend, StorageBackend::Memory);
        assert_eq!(flags.options.endpoint_reconciler_type, EndpointReconcilerType::MasterCount);
        assert_eq!(flags.options.apiserver_count, 3);
        assert_eq!(
            flags.options.runtime_config,
            "api/beta=true,apps/v1/deployments=false".parse().expect("nothing is refused here")
        );
        assert_eq!(flags.options.event_ttl, Duration::from_secs(5400));
        assert_eq!(flags.options.encryption_provider_config, Some(PathBuf::from("/etc/encryption.yaml")));
        assert!(flags.options.encryption_provider_config_automatic_reload);
        let flags = read(
            &command().get_matches_from(["pintle", "--encryption-provider-config-automatic-reload=false"]),
        );
        assert!(!flags.options.encryption_provider_config_automatic_reload);
    }

    #[test]
    fn storage_is_told_for_each_resource() {
        let parse = |arguments: &[&str]| read(&command().get_matches_from([&["pintle"], arguments].concat()));
        let options = parse(&[]).options;
        assert!(options.watch_cache.enabled && options.storage_media_type.is_none());
        let flags = parse(&[
            "--watch-cache=F",
            "--watch-cache-sizes=pods#0,nodes#10",
            "--watch-cache-sizes",
            "pods#7",
            "--storage-media-type=application/yaml",
            "--etcd-servers-overrides=/events#http://a:1,/pods#http://b:2",
            "--etcd-servers-overrides=/nodes#http://c:3",
            "--default-watch-cache-size=0",
            "--etcd-count-metric-poll-period=0",
            "--etcd-db-metric-poll-interval=1m",
        ]);
        let options = flags.options;
        assert!(!options.watch_cache.enabled);
        let sizes: std::collections::BTreeMap<_, _> =
            options.watch_cache.sizes.iter().map(|(resource, size)| (resource.to_string(), *size)).collect();
        assert_eq!(sizes, [("nodes".to_owned(), 10), ("pods".to_owned(), 7)].into());
        assert_eq!(options.storage_media_type, Some(StorageMediaType::Yaml));
        assert_eq!(options.etcd_servers_overrides.0.len(), 3);
        assert_eq!(options.etcd_count_metric_poll_period, Duration::ZERO);
        assert_eq!(options.etcd_db_metric_poll_interval, Duration::from_secs(60));
        assert_eq!(flags.warnings.len(), 1);
        assert!(parse(&["--watch-cache"]).options.watch_cache.enabled);
    }

    #[test]
    fn mistakes_in_flags_are_told_in_the_reference_s_words() {
        let check = |argument: &str, expected: &str| {
            let error = command().try_get_matches_from(["pintle", argument]).expect_err(argument).to_string();
            assert!(error.contains(expected), "{argument}: {error}");
        };
        check(
            "--storage-media-type=text/plain",
            "--storage-media-type \"text/plain\" invalid, allowed values: ",
        );
        check("--watch-cache-sizes=pods", "invalid value of watch cache size: pods");
        check("--etcd-servers-overrides=pods", "--etcd-servers-overrides invalid, must be of format: ");
        check("--watch-cache=perhaps", "strconv.ParseBool: parsing \"perhaps\": invalid syntax");
    }

    #[test]
    fn etcd_servers_choose_the_backend_unless_another_is_named() {
        let options =
            |flags: &[&str]| read(&command().get_matches_from([&["pintle"], flags].concat())).options;
        let etcd = options(&[
            "--etcd-servers=https://a:2379,https://b:2379",
            "--etcd-servers=https://c:2379",
            "--etcd-cafile=/ca",
            "--lease-reuse-duration-seconds=10",
            "--etcd-prefix=/other",
        ]);
        assert_eq!(etcd.storage_backend, StorageBackend::Etcd3);
        let cluster = etcd.etcd().expect("fits").expect("is etcd");
        assert_eq!(cluster.endpoints, ["https://a:2379", "https://b:2379", "https://c:2379"]);
        assert_eq!(cluster.ca_file, Some("/ca".into()));
        assert_eq!(cluster.lease_reuse, Duration::from_secs(10));
        assert_eq!(cluster.prefix, "/other/");

        assert!(options(&[]).etcd().expect("fits").is_none());
        let wrong: &[(&[&str], &str)] = &[
            (&["--storage-backend=etcd3"], "--etcd-servers must be specified"),
            (
                &["--storage-backend=embedded", "--etcd-servers=http://a:1"],
                "--etcd-servers is for --storage-backend=etcd3 only",
            ),
            (&["--etcd-keyfile=/key"], "--etcd-keyfile is for --storage-backend=etcd3 only"),
            (
                &["--etcd-servers=http://a:1", "--etcd-keyfile=/key"],
                "--etcd-certfile and --etcd-keyfile must be specified together",
            ),
        ];
        for (flags, message) in wrong {
            assert_eq!(options(flags).etcd().err().as_deref(), Some(*message), "{flags:?}");
        }
    }

    #[test]
    fn unknown_flags_are_errors() {
        assert!(command().try_get_matches_from(["pintle", "--no-such-flag"]).is_err());
        assert!(command().try_get_matches_from(["pintle", "--request-timeout=soon"]).is_err());
        assert!(command().try_get_matches_from(["pintle", "--endpoint-reconciler-type=some"]).is_err());
        assert!(command().try_get_matches_from(["pintle", "--apiserver-count=0"]).is_err());
    }
}
