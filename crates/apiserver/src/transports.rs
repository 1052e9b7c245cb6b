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
    kubelets: ArcSwap<Kubelets>,
    /// Without credentials and verification.
    cluster: Arc<Client>,
    /// Without TLS.
    plain: Arc<Client>,
    /// The time limit for a connection to a kubelet.
    timeout: Duration,
    /// The limit of upgraded connections.
    bytes_per_second: Option<NonZeroU64>,
    /// Opens all connections.
    dialer: Dialer,
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
        let limited = |client: Client| Arc::new(client.with_upgraded_bytes_per_second(bytes_per_second));
        let settings =
            TlsSettings { ca: &[], insecure: true, client_certificate: None, both_protocols: false };
        Ok(Transports {
            kubelets: ArcSwap::from_pointee(Kubelets::new(
                None,
                &ClientCertificate::default(),
                timeout,
                bytes_per_second,
                &dialer,
            )?),
            cluster: limited(Client::of_hosts(Some(&settings), DIAL_TIMEOUT, &dialer)?),
            plain: limited(Client::of_hosts(None, DIAL_TIMEOUT, &dialer)?),
            timeout,
            bytes_per_second,
            dialer,
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
        let kubelets = Kubelets::new(ca, certificate, self.timeout, self.bytes_per_second, &self.dialer)?;
        self.kubelets.store(Arc::new(kubelets));
        Ok(())
    }

    /// The client of a destination.
    pub(crate) fn client(&self, transport: Transport, scheme: Scheme) -> Arc<Client> {
        match (transport, scheme) {
            (_, Scheme::Http) => self.plain.clone(),
            (Transport::Kubelet, Scheme::Https) => self.kubelets.load().verified.clone(),
            (Transport::UnverifiedKubelet, Scheme::Https) => self.kubelets.load().unverified.clone(),
            (Transport::Cluster, Scheme::Https) => self.cluster.clone(),
        }
    }
}
