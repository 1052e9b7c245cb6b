//! The facts of a connection's peer, which every request on the connection carries as extensions.

use http::HeaderMap;
use pintle_go_forms::parse_ip_sloppy;
use rustls_pki_types::CertificateDer;
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

/// The peer address of the connection.
#[derive(Debug, Clone, Copy)]
pub struct RemoteAddress(pub SocketAddr);

/// The certificate chain that a client presented, leaf first; the TLS handshake proved possession of its key. The
/// authenticator decides whether it trusts the chain.
#[derive(Clone)]
pub struct PeerCertificates(pub Arc<[CertificateDer<'static>]>);

/// The source addresses of a request: as claimed by proxies, then the connection's own, the only reliable one.
pub(crate) fn source_ips(headers: &HeaderMap, remote: Option<&RemoteAddress>) -> Vec<IpAddr> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let forwarded = text("x-forwarded-for").split(',');
    let mut ips: Vec<IpAddr> =
        forwarded.filter_map(|ip| parse_ip_sloppy(ip.trim())).map(|ip| ip.to_canonical()).collect();
    if let Some(ip) = parse_ip_sloppy(text("x-real-ip")).map(|ip| ip.to_canonical())
        && !ips.contains(&ip)
    {
        ips.push(ip);
    }
    if let Some(RemoteAddress(address)) = remote {
        let ip = address.ip().to_canonical();
        if ips.last() != Some(&ip) {
            ips.push(ip);
        }
    }
    ips
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_proxies_and_of_the_connection() {
        let check = |headers: &[(&'static str, &'static str)], want: &[&str]| {
            let headers: HeaderMap = headers
                .iter()
                .map(|(name, value)| {
                    (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
                })
                .collect();
            let remote = RemoteAddress("[::ffff:127.0.0.1]:1234".parse().unwrap());
            let got: Vec<String> =
                source_ips(&headers, Some(&remote)).iter().map(ToString::to_string).collect();
            assert_eq!(got, want);
        };
        check(&[], &["127.0.0.1"]);
        check(
            &[("x-forwarded-for", "1.2.3.4, x, 5.6.7.8"), ("x-real-ip", "9.9.9.9")],
            &["1.2.3.4", "5.6.7.8", "9.9.9.9", "127.0.0.1"],
        );
        check(
            &[("x-forwarded-for", "1.2.3.4,127.0.0.1"), ("x-real-ip", "1.2.3.4")],
            &["1.2.3.4", "127.0.0.1"],
        );
    }
}
