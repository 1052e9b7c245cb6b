//! The facts of a connection's peer, which every request on the connection carries as extensions.

use rustls_pki_types::CertificateDer;
use std::{net::SocketAddr, sync::Arc};

/// The peer address of the connection.
#[derive(Debug, Clone, Copy)]
pub struct RemoteAddress(pub SocketAddr);

/// The certificate chain that a client presented, leaf first; the TLS handshake proved possession of its key. The
/// authenticator decides whether it trusts the chain.
#[derive(Clone)]
pub struct PeerCertificates(pub Arc<[CertificateDer<'static>]>);
