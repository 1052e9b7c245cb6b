//! The flags of aggregation. Names and defaults are kube-apiserver's
//! (<https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/>).

use super::arguments::{flag, set, switch};
use clap::{Arg, ArgMatches, value_parser};
use pintle_aggregator::Routing;
use std::path::PathBuf;

/// The options of aggregation: how requests reach the servers behind API services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregationOptions {
    /// The client certificate that those servers trust to name the user, and its key.
    pub proxy_client_cert_file: Option<PathBuf>,
    /// The key of the client certificate.
    pub proxy_client_key_file: Option<PathBuf>,
    /// Whether services are reached at their endpoints instead of their cluster IPs. Holds for webhooks, too.
    pub enable_aggregator_routing: bool,
    /// Whether redirects of those servers are refused.
    pub reject_forwarding_redirect: bool,
}

impl Default for AggregationOptions {
    fn default() -> AggregationOptions {
        AggregationOptions {
            proxy_client_cert_file: None,
            proxy_client_key_file: None,
            enable_aggregator_routing: false,
            reject_forwarding_redirect: true,
        }
    }
}

impl AggregationOptions {
    /// The flags.
    pub fn args() -> Vec<Arg> {
        let path = |arg: Arg| arg.value_parser(value_parser!(PathBuf));
        vec![
            path(flag(
                "proxy-client-cert-file",
                "FILE",
                "Client certificate for requests to extension API servers",
            )),
            path(flag("proxy-client-key-file", "FILE", "Private key of --proxy-client-cert-file")),
            switch(
                "enable-aggregator-routing",
                "Sends requests to the endpoints of a service instead of its cluster IP",
            ),
            switch("aggregator-reject-forwarding-redirect", "Refuses redirects of extension API servers"),
        ]
    }

    /// Reads the flags.
    pub fn read(matches: &ArgMatches) -> AggregationOptions {
        let mut options = AggregationOptions {
            proxy_client_cert_file: matches.get_one("proxy-client-cert-file").cloned(),
            proxy_client_key_file: matches.get_one("proxy-client-key-file").cloned(),
            ..AggregationOptions::default()
        };
        set(matches, "enable-aggregator-routing", &mut options.enable_aggregator_routing);
        set(matches, "aggregator-reject-forwarding-redirect", &mut options.reject_forwarding_redirect);
        options
    }

    /// How services are reached.
    pub(crate) fn routing(&self) -> Routing {
        match self.enable_aggregator_routing {
            true => Routing::Endpoints,
            false => Routing::ClusterIp,
        }
    }
}
