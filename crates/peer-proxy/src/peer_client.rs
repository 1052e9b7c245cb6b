//! The client of all other servers of the cluster.

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use pintle_dialer::{Client, ClientCertificate, Dialer, TlsSettings};
use std::{sync::Arc, time::Duration};

/// The name that the certificate of each server has.
const SERVER_NAME: &str = "kubernetes.default.svc";
/// The time limit for each of the two steps of a connection, TCP and TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The client. It presents the certificate of front proxies, by which the other servers believe it the user, and verifies
/// them by an authority of their own (`--peer-ca-file`). Its connections are kept until one of the two changes.
pub struct PeerClient {
    certificate: Arc<ClientCertificate>,
    dialer: Dialer,
    ca: Mutex<Vec<u8>>,
    current: ArcSwap<Client>,
}

impl PeerClient {
    /// A client that verifies servers by these certificates, in PEM.
    ///
    /// # Errors
    /// When the certificates are unusable.
    pub fn new(
        ca: Vec<u8>,
        certificate: Arc<ClientCertificate>,
        dialer: Dialer,
    ) -> Result<PeerClient, String> {
        let client = client(&ca, &certificate, &dialer)?;
        Ok(PeerClient { certificate, dialer, ca: Mutex::new(ca), current: ArcSwap::from_pointee(client) })
    }

    /// Verifies the servers of later connections by these certificates, in PEM.
    ///
    /// # Errors
    /// When the certificates are unusable; what was set before stays.
    pub fn set_ca(&self, ca: Vec<u8>) -> Result<(), String> {
        let mut own = self.ca.lock();
        self.current.store(Arc::new(client(&ca, &self.certificate, &self.dialer)?));
        *own = ca;
        Ok(())
    }

    /// The present client.
    pub(crate) fn current(&self) -> Arc<Client> {
        self.current.load_full()
    }

    /// Presents each new certificate. Never returns while the certificate can change.
    pub(crate) async fn follow_certificate(&self) {
        let mut changes = self.certificate.changes();
        while changes.changed().await.is_ok() {
            let ca = self.ca.lock();
            match client(&ca, &self.certificate, &self.dialer) {
                Ok(client) => self.current.store(Arc::new(client)),
                Err(error) => {
                    tracing::error!(error, "the new client certificate is unusable for other servers")
                }
            }
        }
    }
}

fn client(ca: &[u8], certificate: &ClientCertificate, dialer: &Dialer) -> Result<Client, String> {
    // Without certificates the system's authorities would be trusted.
    if ca.trim_ascii().is_empty() {
        return Err("the file has no certificate".to_owned());
    }
    let certificate = certificate.current();
    let settings = TlsSettings {
        ca,
        insecure: false,
        client_certificate: certificate.as_ref().map(|pair| (pair.0.as_slice(), pair.1.as_slice())),
        both_protocols: true,
    };
    let client = Client::new(SERVER_NAME.to_owned(), &settings, dialer).map_err(|error| error.to_string())?;
    Ok(client.with_connect_timeout(CONNECT_TIMEOUT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_that_are_none_are_refused() {
        for ca in ["", " \n", "no certificate", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"] {
            let client = PeerClient::new(ca.as_bytes().to_vec(), Arc::default(), Dialer::default());
            assert!(client.is_err(), "{ca:?}");
        }
    }
}
