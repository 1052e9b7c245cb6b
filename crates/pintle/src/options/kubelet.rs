//! The flags of connections to kubelets. Names and defaults are kube-apiserver's
//! (<https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/>).

use super::arguments::{duration, flag, integer, list, set, set_list};
use clap::{Arg, ArgMatches, value_parser};
use pintle_api::core::node::KubeletAddresses;
use std::{num::NonZeroU64, path::PathBuf, time::Duration};

/// The options of connections to kubelets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeletOptions {
    /// The certificate by which kubelets know this server; by default a generated one.
    pub client_certificate: Option<PathBuf>,
    /// The key of the certificate.
    pub client_key: Option<PathBuf>,
    /// The authorities that the certificates of kubelets are verified by; without them nothing is verified.
    pub certificate_authority: Option<PathBuf>,
    /// The types of node addresses in the order in which they are tried.
    pub preferred_address_types: Vec<String>,
    /// The port of kubelets whose nodes tell none. Deprecated.
    pub port: u32,
    /// The time limit for a connection to a kubelet, without the requests on it.
    pub timeout: Duration,
    /// The most bytes per second of a direction of an upgraded connection; without a limit if it is not positive.
    pub max_connection_bytes_per_sec: i64,
}

impl Default for KubeletOptions {
    fn default() -> KubeletOptions {
        let types = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];
        KubeletOptions {
            client_certificate: None,
            client_key: None,
            certificate_authority: None,
            preferred_address_types: types.map(str::to_owned).into(),
            port: 10250,
            timeout: Duration::from_secs(5),
            max_connection_bytes_per_sec: 0,
        }
    }
}

impl KubeletOptions {
    /// The flags.
    pub fn args() -> Vec<Arg> {
        let path = |arg: Arg| arg.value_parser(value_parser!(PathBuf));
        vec![
            path(flag("kubelet-client-certificate", "FILE", "Client certificate for requests to kubelets")),
            path(flag("kubelet-client-key", "FILE", "Private key of --kubelet-client-certificate")),
            path(flag("kubelet-certificate-authority", "FILE", "Certificate authorities of kubelets' serving certificates")),
            list("kubelet-preferred-address-types", "TYPES", "Types of node addresses, the preferred ones first"),
            flag("kubelet-port", "PORT", "Deprecated: the port of kubelets whose node has no port in its status")
                .value_parser(integer::<u32>),
            flag("kubelet-read-only-port", "PORT", "Deprecated: it has no effect")
                .value_parser(integer::<u32>),
            flag("kubelet-timeout", "DURATION", "Timeout of connecting to a kubelet")
                .value_parser(duration),
            flag(
                "max-connection-bytes-per-sec",
                "N",
                "Limit of upgraded connections to nodes, pods and services, in bytes per second; 0 for no limit",
            )
            .value_parser(integer::<i64>),
        ]
    }

    /// Reads the flags.
    pub fn read(matches: &ArgMatches) -> KubeletOptions {
        let mut options = KubeletOptions {
            client_certificate: matches.get_one("kubelet-client-certificate").cloned(),
            client_key: matches.get_one("kubelet-client-key").cloned(),
            certificate_authority: matches.get_one("kubelet-certificate-authority").cloned(),
            ..KubeletOptions::default()
        };
        set_list(matches, "kubelet-preferred-address-types", &mut options.preferred_address_types);
        set(matches, "kubelet-port", &mut options.port);
        set(matches, "kubelet-timeout", &mut options.timeout);
        set(matches, "max-connection-bytes-per-sec", &mut options.max_connection_bytes_per_sec);
        options
    }

    /// The limit of upgraded connections, in bytes per second.
    pub(crate) fn bytes_per_second(&self) -> Option<NonZeroU64> {
        u64::try_from(self.max_connection_bytes_per_sec).ok().and_then(NonZeroU64::new)
    }

    /// The addresses at which kubelets are reached.
    pub(crate) fn addresses(&self) -> KubeletAddresses {
        KubeletAddresses::new(self.preferred_address_types.iter().cloned()).with_port(self.port)
    }
}
