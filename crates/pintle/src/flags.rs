//! Flags.

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use pintle::{Options, StorageBackend};
use pintle_machinery::codec::parse_duration;
use std::{net::IpAddr, path::PathBuf, time::Duration};

/// The command line, read.
pub(crate) struct Flags {
    pub(crate) options: Options,
    verbosity: u8,
}

impl Flags {
    /// Which log lines are written.
    pub(crate) fn log_filter(&self) -> &'static str {
        match self.verbosity {
            0..=1 => "info",
            2..=4 => "pintle=debug,pintle_apiserver=debug,info",
            _ => "debug",
        }
    }
}

/// Reads the command line; prints help or an error and ends the process when it is not to be run.
pub(crate) fn parse() -> Flags {
    read(&command().get_matches())
}

fn command() -> Command {
    let flag = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let path = |arg: Arg| arg.value_parser(value_parser!(PathBuf));
    Command::new("pintle")
        .version(env!("CARGO_PKG_VERSION"))
        .about("The Kubernetes API server in one small binary")
        .args([
            path(flag("data-dir", "DIR", "where the store, certificates and admin.kubeconfig are")),
            flag("storage-backend", "NAME", "embedded or memory").value_parser(["embedded", "memory"]),
            flag("etcd-prefix", "PREFIX", "the prefix of all storage keys"),
            flag("etcd-compaction-interval", "DURATION", "how often history is compacted; 0 is never")
                .value_parser(duration),
            flag("runtime-config", "KEY=VALUE,…", "groups, versions and resources to switch on and off")
                .action(ArgAction::Append),
            flag("event-ttl", "DURATION", "how long events are kept; 0 is for ever").value_parser(duration),
            flag("bind-address", "IP", "the address to listen on").value_parser(value_parser!(IpAddr)),
            flag("secure-port", "PORT", "the port to listen on").value_parser(value_parser!(u16)),
            flag("advertise-address", "IP", "the address that members of the cluster reach the server at")
                .value_parser(value_parser!(IpAddr)),
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
}

fn read(matches: &ArgMatches) -> Flags {
    let mut options = Options::default();
    let paths: [(&str, &mut Option<PathBuf>); 5] = [
        ("cert-dir", &mut options.cert_dir),
        ("tls-cert-file", &mut options.tls_cert_file),
        ("tls-private-key-file", &mut options.tls_private_key_file),
        ("client-ca-file", &mut options.client_ca_file),
        ("token-auth-file", &mut options.token_auth_file),
    ];
    for (name, option) in paths {
        *option = matches.get_one(name).cloned();
    }
    set(matches, "data-dir", &mut options.data_dir);
    set(matches, "etcd-prefix", &mut options.etcd_prefix);
    set(matches, "etcd-compaction-interval", &mut options.etcd_compaction_interval);
    for text in matches.get_many::<String>("runtime-config").into_iter().flatten() {
        options.runtime_config.add(text);
    }
    set(matches, "event-ttl", &mut options.event_ttl);
    set(matches, "bind-address", &mut options.bind_address);
    set(matches, "secure-port", &mut options.secure_port);
    options.advertise_address = matches.get_one("advertise-address").copied();
    set(matches, "service-cluster-ip-range", &mut options.service_cluster_ip_range);
    set(matches, "service-node-port-range", &mut options.service_node_port_range);
    set(matches, "request-timeout", &mut options.request_timeout);
    set(matches, "max-requests-inflight", &mut options.max_requests_inflight);
    set(matches, "max-mutating-requests-inflight", &mut options.max_mutating_requests_inflight);
    if matches.get_one::<String>("storage-backend").is_some_and(|name| name == "memory") {
        options.storage_backend = StorageBackend::Memory;
    }
    Flags { options, verbosity: matches.get_one("v").copied().unwrap_or_default() }
}

fn set<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str, option: &mut T) {
    if let Some(value) = matches.get_one::<T>(name) {
        *option = value.clone();
    }
}

/// A duration as Go writes it.
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
            "--runtime-config=api/beta=true",
            "--runtime-config=apps/v1/deployments=false",
            "--event-ttl=90m",
        ]));
        assert_eq!(flags.options.secure_port, 1234);
        assert_eq!(flags.options.request_timeout, Duration::from_secs(90));
        assert_eq!(flags.options.service_cluster_ip_range, "10.9.0.0/16");
        assert_eq!(flags.options.storage_backend, StorageBackend::Memory);
        assert_eq!(
            flags.options.runtime_config,
            "api/beta=true,apps/v1/deployments=false".parse().expect("nothing is refused here")
        );
        assert_eq!(flags.options.event_ttl, Duration::from_secs(5400));
    }

    #[test]
    fn unknown_flags_are_errors() {
        assert!(command().try_get_matches_from(["pintle", "--no-such-flag"]).is_err());
        assert!(command().try_get_matches_from(["pintle", "--request-timeout=soon"]).is_err());
    }
}
