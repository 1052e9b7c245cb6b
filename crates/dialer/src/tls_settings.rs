//! The TLS settings of connections.

use crate::{ConfigError, roots};
use pintle_tls::ServerVerifier;
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::Resumption,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    sign::SingleCertAndKey,
};
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// The number of TLS sessions that are remembered, of all servers together. Most settings are those of one server, and
/// there may be thousands of them.
const MAX_SESSIONS: usize = 64;

/// The trust anchors and the client credentials.
#[derive(Clone, Copy)]
pub struct TlsSettings<'a> {
    /// The CA certificates, in PEM; blank for the system's trust anchors.
    pub ca: &'a [u8],
    /// Whether the server's certificate is not verified.
    pub insecure: bool,
    /// The client certificate and its key, in PEM.
    pub client_certificate: Option<(&'a [u8], &'a [u8])>,
    /// Whether HTTP/2 may be negotiated.
    pub both_protocols: bool,
}

impl TlsSettings<'_> {
    /// Configures TLS.
    ///
    /// # Errors
    /// When the certificates or the key are unusable.
    pub fn connector(&self) -> Result<TlsConnector, ConfigError> {
        let provider = Arc::new(pintle_tls::crypto_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match self.insecure {
            true => Arc::new(Anybody(provider.clone())),
            false => Arc::new(ServerVerifier::new(roots::roots(self.ca)?, provider.clone())),
        };
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| ConfigError::Tls(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match self.client_certificate {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let failed = |error: String| ConfigError::Tls(format!("client certificate: {error}"));
                let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
                let chain = chain.map_err(|error| failed(error.to_string()))?;
                let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| failed(error.to_string()))?;
                let own = pintle_tls::certified_key(chain, key, &provider);
                let own = own.map_err(|error| failed(error.to_string()))?;
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own)))
            }
        };
        config.resumption = Resumption::in_memory_sessions(MAX_SESSIONS);
        config.alpn_protocols = match self.both_protocols {
            true => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            false => vec![b"http/1.1".to_vec()],
        };
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

/// The same TLS for connections of HTTP/1.1 alone.
pub(crate) fn without_http2(connector: &TlsConnector) -> TlsConnector {
    let mut config = ClientConfig::clone(connector.config());
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}

/// Accepts any server certificate, as `insecure-skip-tls-verify` requires. The server's possession of the private key
/// is verified all the same.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        pintle_tls::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        pintle_tls::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_certificate_may_be_of_version_one() {
        let certificate = include_bytes!("../../x509/fixtures/version-one.crt");
        let key = include_bytes!("../../x509/fixtures/version-one.key");
        let settings = TlsSettings {
            ca: b"",
            insecure: true,
            client_certificate: Some((certificate, key)),
            both_protocols: true,
        };
        assert!(settings.connector().is_ok());
    }
}
