//! The clients by which streams and proxied requests reach nodes, pods and services.

use arc_swap::ArcSwap;
use pintle_dialer::{Client, ClientCertificate, ConfigError, Dialer, TlsSettings};
use pintle_registry::{Scheme, Transport};
use std::{num::NonZeroU64, sync::Arc, time::Duration};

/// The clients of all destinations. Idle connections are kept for later requests.
///
/// All connections are of HTTP/1.1: they can be upgraded, and a request keeps the `Host` header of its client, which in
/// HTTP/2 would contradict the address.
pub struct Transports {
    anywhere: Clients,
    /// Those that connect to no address of this server and its surroundings.
    elsewhere: Clients,
    /// The time limit for a connection to a kubelet.
    timeout: Duration,
    /// The limit of upgraded connections.
    bytes_per_second: Option<NonZeroU64>,
}

/// The clients that connect to the addresses that one dialer permits.
struct Clients {
    kubelets: ArcSwap<Kubelets>,
    /// Without credentials and verification.
    cluster: Arc<Client>,
    /// Without TLS.
    plain: Arc<Client>,
    /// Opens all connections.
    dialer: Dialer,
}

impl Clients {
    fn new(
        timeout: Duration,
        bytes_per_second: Option<NonZeroU64>,
        dialer: Dialer,
    ) -> Result<Clients, ConfigError> {
        let limited = |client: Client| Arc::new(client.with_upgraded_bytes_per_second(bytes_per_second));
        let settings =
            TlsSettings { ca: &[], insecure: true, client_certificate: None, both_protocols: false };
        let kubelets =
            Kubelets::new(None, &ClientCertificate::default(), timeout, bytes_per_second, &dialer)?;
        Ok(Clients {
            kubelets: ArcSwap::from_pointee(kubelets),
            cluster: limited(Client::of_hosts(Some(&settings), DIAL_TIMEOUT, &dialer)?),
            plain: limited(Client::of_hosts(None, DIAL_TIMEOUT, &dialer)?),
            dialer,
        })
    }

    fn get(&self, transport: Transport, scheme: Scheme) -> Arc<Client> {
        match (transport, scheme) {
            (_, Scheme::Http) => self.plain.clone(),
            (Transport::Kubelet, Scheme::Https) => self.kubelets.load().verified.clone(),
            (Transport::UnverifiedKubelet, Scheme::Https) => self.kubelets.load().unverified.clone(),
            (Transport::Cluster, Scheme::Https) => self.cluster.clone(),
        }
    }
}

/// The time limit for a connection to a pod or a service: that of Go's transports.
const DIAL_TIMEOUT: Duration = Duration::from_secs(30);

/// The clients of kubelets.
struct Kubelets {
    verified: Arc<Client>,
    unverified: Arc<Client>,
}

impl Kubelets {
    fn new(
        ca: Option<&[u8]>,
        certificate: &ClientCertificate,
        timeout: Duration,
        bytes_per_second: Option<NonZeroU64>,
        dialer: &Dialer,
    ) -> Result<Kubelets, ConfigError> {
        let certificate = certificate.current();
        let client_certificate = certificate.as_ref().map(|pair| (pair.0.as_slice(), pair.1.as_slice()));
        let settings = |ca: Option<&[u8]>| {
            let settings = TlsSettings {
                ca: ca.unwrap_or_default(),
                insecure: ca.is_none(),
                client_certificate,
                both_protocols: false,
            };
            let client = Client::of_hosts(Some(&settings), timeout, dialer)?;
            Ok::<_, ConfigError>(client.with_upgraded_bytes_per_second(bytes_per_second))
        };
        Ok(Kubelets { verified: Arc::new(settings(ca)?), unverified: Arc::new(settings(None)?) })
    }
}

impl Transports {
    /// Clients in the network of the dialer, without a certificate for kubelets, whose certificates are not verified. A connection to a kubelet must
    /// be made within `timeout`. On connections that are upgraded, or become the streams of a command, at most this number
    /// of bytes passes each second in each direction; `None` for any number.
    ///
    /// # Errors
    /// When TLS cannot be configured.
    pub fn new(
        timeout: Duration,
        bytes_per_second: Option<NonZeroU64>,
        dialer: Dialer,
    ) -> Result<Transports, ConfigError> {
        let elsewhere = dialer.permitting(pintle_registry::is_proxyable);
        Ok(Transports {
            anywhere: Clients::new(timeout, bytes_per_second, dialer)?,
            elsewhere: Clients::new(timeout, bytes_per_second, elsewhere)?,
            timeout,
            bytes_per_second,
        })
    }

    /// Sets the authorities that kubelets are verified by, in PEM, and the certificate by which they know this server.
    /// Without authorities they are not verified. Later requests use new connections; running ones go on.
    ///
    /// # Errors
    /// When the authorities are unusable; what was set before stays.
    pub fn set_kubelets(
        &self,
        ca: Option<&[u8]>,
        certificate: &ClientCertificate,
    ) -> Result<(), ConfigError> {
        let new = |clients: &Clients| {
            Kubelets::new(ca, certificate, self.timeout, self.bytes_per_second, &clients.dialer).map(Arc::new)
        };
        let (anywhere, elsewhere) = (new(&self.anywhere)?, new(&self.elsewhere)?);
        self.anywhere.kubelets.store(anywhere);
        self.elsewhere.kubelets.store(elsewhere);
        Ok(())
    }

    /// The client of a destination.
    pub(crate) fn client(&self, transport: Transport, scheme: Scheme) -> Arc<Client> {
        self.anywhere.get(transport, scheme)
    }

    /// As [`Transports::client`], for hosts that others name: it connects to no address of this server and its
    /// surroundings, whatever the name resolves to.
    pub(crate) fn client_elsewhere(&self, transport: Transport, scheme: Scheme) -> Arc<Client> {
        self.elsewhere.get(transport, scheme)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;
    use pintle_dialer::empty_body;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn names_of_this_machine_are_not_connected_to_elsewhere() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let transports = Transports::new(Duration::from_secs(5), None, Dialer::default()).unwrap();
        for transport in [Transport::Kubelet, Transport::UnverifiedKubelet, Transport::Cluster] {
            for (scheme, name) in [(Scheme::Http, "http"), (Scheme::Https, "https")] {
                let url: http::Uri = format!("{name}://localhost:{port}/").parse().unwrap();
                let client = transports.client_elsewhere(transport, scheme);
                let request = Request::get(url.clone()).body(empty_body()).unwrap();
                assert_eq!(client.send(request).await.unwrap_err().to_string(), "address not allowed");
                // Nor are connections made that are upgraded.
                assert_eq!(client.connect(url).await.err().unwrap().to_string(), "address not allowed");
            }
        }
        let url = format!("http://localhost:{port}/").parse().unwrap();
        assert!(transports.client(Transport::Cluster, Scheme::Http).connect(url).await.is_ok());
    }
}
