//! Declares where connects go: streams and proxied requests to nodes, pods and services.

use crate::{BoxFuture, RequestContext};
use pintle_machinery::{Status, Value};
use std::{fmt, net::IpAddr};

/// Resolves the destination of the connects of a subresource.
pub trait Connecter: Send + Sync {
    /// A verb that the user must be allowed besides the verb of the request's method. It is checked before anything is
    /// read.
    fn required_verb(&self) -> Option<&'static str> {
        None
    }

    /// Counts a connection that failed because the certificate of the destination was refused.
    fn note_untrusted(&self) {}

    /// Resolves the destination of the request of `context` with its `options`, which are valid. `None` when there is
    /// nothing to connect to yet, which is answered with 204.
    ///
    /// # Errors
    /// The `Status` that the client gets.
    fn connect<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        options: &'a Value,
    ) -> BoxFuture<'a, Result<Option<Destination>, Status>>;
}

/// A destination of a connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The URL that is asked.
    pub location: Location,
    /// The credentials and the trust of the connection.
    pub transport: Transport,
    /// How the answer reaches the client.
    pub service: ConnectService,
}

/// A URL, in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Plain HTTP or TLS.
    pub scheme: Scheme,
    /// The host name or the address; an IPv6 address has no brackets.
    pub host: String,
    /// The port as it was requested or declared; `None` for the default port of the scheme.
    pub port: Option<String>,
    /// The path, not escaped; "" for none.
    pub path: String,
    /// The parameters of the query, not escaped, in any order.
    pub query: Vec<(&'static str, String)>,
}

impl Location {
    /// The host and the port, as a URL has them.
    pub fn authority(&self) -> String {
        let host = &self.host;
        match (&self.port, host.contains(':')) {
            (Some(port), true) => format!("[{host}]:{port}"),
            (Some(port), false) => format!("{host}:{port}"),
            (None, true) => format!("[{host}]"),
            (None, false) => host.clone(),
        }
    }
}

/// The scheme of a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS.
    Https,
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        })
    }
}

/// The credentials and the trust of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// To a kubelet: with the server's client certificate. The kubelet's certificate is verified if the server is
    /// configured to.
    Kubelet,
    /// To a kubelet, whose certificate is not verified.
    UnverifiedKubelet,
    /// To a pod, a service or another port of a node: without credentials and without verification.
    Cluster,
}

/// How the answer of a destination reaches the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectService {
    /// A GET without the client's headers and body, whose response streams to the client as plain text.
    Text {
        /// Whether each piece is sent at once.
        follow: bool,
    },
    /// The request passes; the destination must upgrade the connection.
    Upgrade(Stream),
    /// The request passes, with its method, query, headers and body, and may upgrade the connection.
    Proxy,
    /// As [`ConnectService::Proxy`]. The host may be a name: a request is refused if it resolves to an address that is
    /// not [`is_proxyable`], and no connection is made to such an address if the name resolves otherwise later.
    ProxyElsewhere,
}

/// Whether requests may be proxied to an address: one that is not loopback, link-local, multicast or unspecified, which
/// all mean the server itself or its surroundings.
pub fn is_proxyable(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let is_nearby = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !is_nearby && !address.is_unspecified() && !address.is_loopback() && !address.is_multicast()
}

/// A stream to a container or a pod, which may be translated between the protocols of client and destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// The destination speaks all protocols itself: nothing is translated.
    Native,
    /// Nothing is translated, whatever the destination speaks.
    Untranslated,
    /// The standard streams of a command.
    Command {
        /// Whether the client sends standard input.
        stdin: bool,
        /// Whether the client gets standard output.
        stdout: bool,
        /// Whether the client gets standard error.
        stderr: bool,
        /// Whether the streams are a terminal.
        tty: bool,
    },
    /// Connections to ports of a pod.
    Ports,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_proxied_to_other_machines_only() {
        let check = |address: &str, expected: bool| {
            assert_eq!(is_proxyable(address.parse().unwrap()), expected, "{address}");
        };
        for own in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "169.254.169.254"] {
            check(own, false);
        }
        for nearby in ["fe80::1", "224.0.0.1", "ff02::1", "255.255.255.255"] {
            check(nearby, false);
        }
        for other in ["10.0.0.1", "8.8.8.8", "fd00::1", "2001:db8::1", "192.168.0.1"] {
            check(other, true);
        }
    }

    #[test]
    fn addresses_of_version_6_have_brackets_in_urls() {
        let check = |host: &str, port: Option<&str>, expected: &str| {
            let location = Location {
                scheme: Scheme::Http,
                host: host.to_owned(),
                port: port.map(str::to_owned),
                path: String::new(),
                query: Vec::new(),
            };
            assert_eq!(location.authority(), expected);
        };
        check("10.0.0.1", Some("80"), "10.0.0.1:80");
        check("10.0.0.1", None, "10.0.0.1");
        check("fd00::1", Some("80"), "[fd00::1]:80");
        check("fd00::1", None, "[fd00::1]");
    }
}
