//! The clients by which streams and proxied requests reach nodes, pods and services.

use arc_swap::ArcSwap;
use pintle_dialer::{Client, ClientCertificate, ConfigError, Dialer, TlsSettings};
use pintle_registry::{Scheme, Transport};
use std::{sync::Arc, time::Duration};

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
            Client::of_hosts(Some(&settings), timeout, dialer)
        };
        Ok(Kubelets { verified: Arc::new(settings(ca)?), unverified: Arc::new(settings(None)?) })
    }
}

impl Transports {
    /// Clients in the network of the dialer, without a certificate for kubelets, whose certificates are not verified. A connection to a kubelet must
    /// be made within `timeout`.
    ///
    /// # Errors
    /// When TLS cannot be configured.
    pub fn new(timeout: Duration, dialer: Dialer) -> Result<Transports, ConfigError> {
        let settings =
            TlsSettings { ca: &[], insecure: true, client_certificate: None, both_protocols: false };
        Ok(Transports {
            kubelets: ArcSwap::from_pointee(Kubelets::new(
                None,
                &ClientCertificate::default(),
                timeout,
                &dialer,
            )?),
            cluster: Arc::new(Client::of_hosts(Some(&settings), DIAL_TIMEOUT, &dialer)?),
            plain: Arc::new(Client::of_hosts(None, DIAL_TIMEOUT, &dialer)?),
            timeout,
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
        self.kubelets.store(Arc::new(Kubelets::new(ca, certificate, self.timeout, &self.dialer)?));
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
