//! Sockets: TLS, HTTP/1.1 and HTTP/2, and an end without broken answers.
//!
//! When [`serve`] is told to stop it takes no new connections, lets open requests finish (watches are ended by their
//! handlers, which hear of the stop too), and returns when the last connection is closed or the grace period is over.
//!
//! **Nobody holds the server up**: handshakes, headers and idle connections have their time, headers and the number of a
//! connection's requests their bounds, and who gives up one request after the other loses the connection.

mod connection;
mod http1;
pub mod tls;
mod unread;

use crate::{
    body::Body,
    body_budget::BodyBudget,
    filters::{Handler, PeerCertificates, RemoteAddress},
    response::Response,
};
use connection::{End, Tracked};
use http::{HeaderValue, Method, Version, header};
use http_body::Body as _;
use http1::{Refusal, Refused, RequestHeads};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use std::{io, pin::pin, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::TlsAcceptor;

pub use connection::ConnectionHandle;
pub use unread::LentBody;

/// How a socket is served.
pub struct ServingConfig {
    /// Keys and trusted client authorities; each connection gets those of the moment.
    pub tls: Arc<tls::ServingTls>,
    /// How many requests a client may have open on one HTTP/2 connection; zero is the default of 100.
    pub http2_max_streams_per_connection: u32,
    /// How long open requests may take after the stop.
    pub grace_period: Duration,
    /// What the bodies of all requests in flight may take.
    pub body_budget: BodyBudget,
}

/// A client has so long to finish the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// As Kubernetes has it: what clients of HTTP/2 begin with.
const MAX_CONCURRENT_STREAMS: u32 = 100;
/// How many times its streams a client may give up at once. Go's server closes connections at this.
const RESETS_PER_STREAM: u32 = 4;
/// Windows that let a list flow without waiting for the client at every frame.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
/// How large headers may be, as Kubernetes has it; above it is 431.
const MAX_HEADERS: usize = 1 << 20;
const MAX_SEND_BUFFER: usize = 256 << 10;

/// Serves a socket until `stop` turns true.
///
/// # Errors
/// When the socket fails for good.
pub async fn serve(
    listener: TcpListener,
    config: ServingConfig,
    handler: Handler,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let max_streams = match config.http2_max_streams_per_connection {
        0 => MAX_CONCURRENT_STREAMS,
        given => given,
    };
    // Each connection holds a receiver until it is closed.
    let (drain, draining) = watch::channel(false);
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
        let acceptor = TlsAcceptor::from(config.tls.current());
        let (handler, draining, budget) = (handler.clone(), draining.clone(), config.body_budget.clone());
        tokio::spawn(async move {
            if let Err(error) =
                connection(stream, remote, acceptor, handler, max_streams, budget, draining).await
            {
                tracing::debug!(error, "connection ended");
            }
        });
    }
    drop((listener, draining));
    drain.send_replace(true);
    tokio::select! {
        () = drain.closed() => {}
        () = tokio::time::sleep(config.grace_period) => tracing::warn!("grace period over, requests are cut off"),
    }
    Ok(())
}

/// Waits until the server is told to stop, or nobody is left to tell it.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    // The result borrows the channel; who waits needs only the fact.
    drop(stop.wait_for(|stop| *stop).await);
}

async fn connection(
    stream: TcpStream,
    remote: RemoteAddress,
    acceptor: TlsAcceptor,
    handler: Handler,
    max_streams: u32,
    budget: BodyBudget,
    mut draining: watch::Receiver<bool>,
) -> Result<(), String> {
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    let stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream))
        .await
        .map_err(|_| "TLS handshake timed out".to_owned())?
        .map_err(|error| error.to_string())?;
    let certificates = stream.get_ref().1.peer_certificates().map(|certificates| {
        PeerCertificates(certificates.iter().map(|der| der.clone().into_owned()).collect())
    });
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let refused = Refused::default();
    let stream = RequestHeads::new(stream, is_http2, refused.clone());
    let handle = ConnectionHandle::new(max_streams.saturating_mul(RESETS_PER_STREAM));
    let tracked = handle.clone();
    let stopping = draining.clone();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let is_head = *request.method() == Method::HEAD;
        let active = tracked.begin();
        let (certificates, tracked) = (certificates.clone(), tracked.clone());
        let refused = refused.clone();
        let (budget, stopping) = (budget.clone(), stopping.clone());
        let answer = check(&request, &refused).map(|()| {
            unread::answer(handler.clone(), request, budget, stopping, move |request| {
                request.extensions_mut().insert(remote);
                if let Some(certificates) = certificates {
                    request.extensions_mut().insert(certificates);
                }
                request.extensions_mut().insert(tracked);
            })
        });
        async move {
            let mut response = match answer {
                Ok(answer) => answer.await,
                Err(response) => *response,
            };
            if refused.is_broken() {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            let active = active.answered();
            let response = if is_head { without_body(response) } else { response };
            Ok::<_, std::convert::Infallible>(response.map(|body| Tracked::new(body, active)))
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // Heads come whole, and in time; how long none may come, the connection's own limit says.
        .header_read_timeout(None)
        .max_headers(http1::MAX_HEADERS)
        .max_buf_size(MAX_HEADERS + 4096);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(max_streams)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(MAX_SEND_BUFFER)
        .max_header_list_size(MAX_HEADERS as u32)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let end = tokio::select! {
        biased;
        result = connection.as_mut() => return result.map_err(|error| error.to_string()),
        end = handle.end() => end,
        () = stopped(&mut draining) => End::GoAway,
    };
    if end == End::GoAway {
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            biased;
            result = connection => return result.map_err(|error| error.to_string()),
            () = handle.abused() => {}
        }
    }
    Err("the client gave up too many requests".to_owned())
}

/// Whether a request's headers are no longer than they may be: what the HTTP library read in one piece it takes even so.
fn is_within_limits<B>(request: &hyper::Request<B>) -> bool {
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    headers.sum::<usize>() <= MAX_HEADERS + 4096
}

/// What is answered in front of all filters, as Go's server does.
fn check<B>(request: &hyper::Request<B>, refused: &Refused) -> Result<(), Box<Response>> {
    if request.version() < Version::HTTP_2
        && let Some(refusal) = refused.next()
    {
        return Err(Box::new(refusal.response()));
    }
    if !is_within_limits(request) {
        return Err(Box::new(Refusal::HeadersTooLarge.response()));
    }
    // What the server as a whole can do: nothing that it tells of.
    if *request.method() == Method::OPTIONS && request.uri().path() == "*" {
        return Err(Box::new(Response::new(Body::empty())));
    }
    Ok(())
}

/// The answer to a HEAD: all of the answer but its body, which HTTP/2 takes for a broken stream.
fn without_body(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        parts.headers.entry(header::CONTENT_LENGTH).or_insert(HeaderValue::from(length));
    }
    Response::from_parts(parts, Body::empty())
}
