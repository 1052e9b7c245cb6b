//! Sockets: TLS, HTTP/1.1 and HTTP/2, and an end without broken answers.
//!
//! When [`serve`] is told to stop it takes no new connections, lets open requests finish (watches are ended by their
//! handlers, which hear of the stop too), and returns when the last connection is closed or the grace period is over.

use crate::{
    body::{Body, RequestBody},
    filters::{Handler, PeerCertificates, RemoteAddress},
    response::Response,
};
use http::{HeaderValue, Method, header};
use http_body::Body as _;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
};
use std::{io, sync::Arc, time::Duration};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tower::Service;

/// How a socket is served.
pub struct ServingConfig {
    /// Keys and trusted client authorities.
    pub tls: Arc<rustls::ServerConfig>,
    /// How long open requests may take after the stop.
    pub grace_period: Duration,
}

/// A client has so long to finish the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// As Go's server has it for Kubernetes: enough for many watches on one connection.
const MAX_CONCURRENT_STREAMS: u32 = 100;
/// Windows that let a list flow without waiting for the client at every frame.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
/// Enough for a selector as long as a URL may be.
const MAX_HEADER_LIST: u32 = 96 * 1024;
const MAX_SEND_BUFFER: usize = 256 << 10;

/// Serves a socket until `stop` turns true.
///
/// # Errors
/// When the socket fails for good.
pub async fn serve(
    listener: TcpListener,
    config: ServingConfig,
    handler: Handler,
    mut stop: tokio::sync::watch::Receiver<bool>,
) -> io::Result<()> {
    let acceptor = TlsAcceptor::from(config.tls);
    let graceful = GracefulShutdown::new();
    loop {
        let (stream, remote) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, remote)) => (stream, RemoteAddress(remote)),
                Err(error) => {
                    // Out of file descriptors, or a client that went away: others are served on.
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = stopped(&mut stop) => break,
        };
        let (acceptor, handler, watcher) = (acceptor.clone(), handler.clone(), graceful.watcher());
        tokio::spawn(async move {
            if let Err(error) = connection(stream, remote, acceptor, handler, watcher).await {
                tracing::debug!(error, "connection ended");
            }
        });
    }
    drop(listener);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = tokio::time::sleep(config.grace_period) => tracing::warn!("grace period over, requests are cut off"),
    }
    Ok(())
}

/// Waits until the server is told to stop, or nobody is left to tell it.
pub async fn stopped(stop: &mut tokio::sync::watch::Receiver<bool>) {
    // The result borrows the channel; who waits needs only the fact.
    drop(stop.wait_for(|stop| *stop).await);
}

async fn connection(
    stream: TcpStream,
    remote: RemoteAddress,
    acceptor: TlsAcceptor,
    handler: Handler,
    watcher: hyper_util::server::graceful::Watcher,
) -> Result<(), String> {
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    let stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream))
        .await
        .map_err(|_| "TLS handshake timed out".to_owned())?
        .map_err(|error| error.to_string())?;
    let certificates = stream.get_ref().1.peer_certificates().map(|certificates| {
        PeerCertificates(certificates.iter().map(|der| der.clone().into_owned()).collect())
    });
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(RequestBody::Incoming);
        request.extensions_mut().insert(remote);
        if let Some(certificates) = &certificates {
            request.extensions_mut().insert(certificates.clone());
        }
        let is_head = *request.method() == Method::HEAD;
        let answer = handler.clone().call(request);
        async move { answer.await.map(|response| if is_head { without_body(response) } else { response }) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(30));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_CONCURRENT_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(MAX_SEND_BUFFER)
        .max_header_list_size(MAX_HEADER_LIST)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    watcher.watch(connection.into_owned()).await.map_err(|error| error.to_string())
}

/// The answer to a HEAD: all of the answer but its body, which HTTP/2 takes for a broken stream.
fn without_body(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        parts.headers.entry(header::CONTENT_LENGTH).or_insert(HeaderValue::from(length));
    }
    Response::from_parts(parts, Body::empty())
}
