//! The client certificate of this server, which may change.

use crate::{ConfigError, TlsSettings};
use arc_swap::ArcSwapOption;
use std::sync::Arc;
use tokio::sync::watch;

/// The client certificate by which other servers know this one: extension API servers (`--proxy-client-cert-file`) or
/// kubelets (`--kubelet-client-certificate`).
#[derive(Default)]
pub struct ClientCertificate {
    current: ArcSwapOption<(Vec<u8>, Vec<u8>)>,
    changes: watch::Sender<u64>,
}

impl ClientCertificate {
    /// Sets the certificate and its key, in PEM. Later connections present it.
    ///
    /// # Errors
    /// When they are unusable; what was set before stays.
    pub fn set(&self, certificate: Vec<u8>, key: Vec<u8>) -> Result<(), ConfigError> {
        TlsSettings {
            ca: &[],
            insecure: true,
            client_certificate: Some((&certificate, &key)),
            both_protocols: true,
        }
        .connector()?;
        self.current.store(Some(Arc::new((certificate, key))));
        self.changes.send_modify(|changes| *changes += 1);
        Ok(())
    }

    /// The certificate and its key, in PEM; `None` before they are set.
    pub fn current(&self) -> Option<Arc<(Vec<u8>, Vec<u8>)>> {
        self.current.load_full()
    }

    /// Changes with each certificate.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
