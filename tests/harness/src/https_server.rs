//! Servers of HTTP/1.1 and HTTP/2 over TLS, for measurements of what calls of them cost.

use crate::Error;
use http::{Request, Response};
use hyper::{
    body::{Body, Bytes, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::{convert::Infallible, net::SocketAddr, sync::Arc, thread};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Serves on a thread of its own, until the process ends. The certificate for `name` is its own authority; it is returned as
/// PEM, with the address.
///
/// # Errors
/// When the address or no certificate can be had.
pub(crate) fn serve<B, A, F>(
    address: (&str, u16),
    name: &str,
    answer: A,
) -> Result<(SocketAddr, String), Error>
where
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
{
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new([name.to_owned()])?.self_signed(&key)?;
    let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut tls = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let tls = TlsAcceptor::from(Arc::new(tls));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind(address))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        runtime.block_on(async {
            while let Ok((socket, _)) = listener.accept().await {
                // A connection ends with an error when its client closes it.
                tokio::spawn(connection(socket, tls.clone(), answer.clone()));
            }
        });
    });
    Ok((address, certificate.pem()))
}

async fn connection<B, A, F>(socket: TcpStream, tls: TlsAcceptor, answer: A) -> Result<(), Error>
where
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
    A: Fn(Request<Incoming>) -> F + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
{
    socket.set_nodelay(true)?;
    let stream = TokioIo::new(tls.accept(socket).await?);
    let service = service_fn(move |request| {
        let answer = answer(request);
        async { Ok::<_, Infallible>(answer.await) }
    });
    auto::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await
}
