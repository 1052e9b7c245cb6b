//! Verification of server certificates, where Pintle is the client.

use crate::handshake_signature;
use pintle_x509::{TrustAnchors, Usage};
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use std::sync::Arc;

/// Verifies servers as Go's clients do, by [`TrustAnchors::verify`]. Errors are [`pintle_x509::VerifyError`], as
/// [`CertificateError::Other`].
#[derive(Debug)]
pub struct ServerVerifier {
    anchors: TrustAnchors,
    provider: Arc<CryptoProvider>,
}

impl ServerVerifier {
    /// A verifier with these trust anchors; without any, every server is refused with an unknown issuer.
    pub fn new(anchors: TrustAnchors, provider: Arc<CryptoProvider>) -> ServerVerifier {
        ServerVerifier { anchors, provider }
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let chain: Vec<CertificateDer<'_>> = std::iter::once(end_entity)
            .chain(intermediates)
            .map(|one| CertificateDer::from(one.as_ref()))
            .collect();
        match self.anchors.verify(&chain, Some(server_name), Usage::Server, now) {
            Ok(_) => Ok(ServerCertVerified::assertion()),
            Err(why) => Err(CertificateError::Other(OtherError(Arc::new(why))).into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        handshake_signature::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        handshake_signature::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
