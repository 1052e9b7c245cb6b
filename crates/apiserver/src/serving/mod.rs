//! Sockets: TLS, HTTP/1.1 and HTTP/2, and an end without broken answers.
//!
//! When [`serve`] is told to stop it takes no new connections, lets open requests finish (watches are ended by their
//! handlers, which hear of the stop too), and returns when the last connection is closed or the grace period is over.
//!
//! **Nobody holds the server up**: handshakes, headers, idle connections and responses have their time; headers, unsent
//! responses, connections and the requests of a connection have their bounds; and a client that gives up one request after
//! the other loses the connection.

mod connection;
mod connections;
mod cutoff;
mod http1;
mod sent_body;
pub mod tls;
mod unread;
mod write_timeout;

use crate::{
    body::Body,
    body_budget::BodyBudget,
    filters::{Handler, PeerCertificates, RemoteAddress},
    response::{Response, json_failure},
    response_budget::ResponseBudget,
};
use connection::End;
use connections::Connections;
use cutoff::{StreamExecutor, guard};
use http::{HeaderValue, Method, Version, header};
use http_body::Body as _;
use http1::{Refusal, Refused, RequestHeads};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto,
};
use pintle_machinery::Status;
use sent_body::SentBody;
use std::{io, pin::pin, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::TlsAcceptor;
use write_timeout::WriteTimeout;

pub use connection::ConnectionHandle;
pub(crate) use cutoff::{Cutoff, SendDeadline};
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
    /// What all answers may take that are not sent yet.
    pub response_budget: ResponseBudget,
    /// How many connections there may be.
    pub max_connections: usize,
}

/// A client has so long to finish the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// As Kubernetes has it: what clients of HTTP/2 begin with.
const MAX_CONCURRENT_STREAMS: u32 = 100;
/// How many times its streams a client may give up at once. Go's server closes connections at this.
const RESETS_PER_STREAM: u32 = 4;
/// How many streams the server may reset for the client's errors. The connection is closed beyond.
const MAX_LOCAL_RESETS: usize = 1024;
/// How long no connection is accepted after that failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
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
    let grace_period = config.grace_period;
    let connections = Connections::new(config.max_connections);
    // Each connection holds a receiver until it is closed.
    let (drain, draining) = watch::channel(false);
    let server = Server { config: Arc::new(config), handler, max_streams, draining };
    loop {
        let (stream, remote) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, remote)) => (stream, RemoteAddress(remote)),
                Err(error) => {
                    // A client that went away, or no file descriptor is left: then idle connections give theirs.
                    let evicted = if is_out_of_descriptors(&error) { connections.evict() } else { 0 };
                    tracing::warn!(%error, evicted, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
            () = stopped(&mut stop) => break,
        };
        let handle = ConnectionHandle::new(max_streams.saturating_mul(RESETS_PER_STREAM));
        let Some(place) = connections.admit(handle.clone()) else {
            tracing::warn!("a connection is refused: there are too many, and all have requests");
            continue;
        };
        let server = server.clone();
        tokio::spawn(async move {
            if let Err(error) = server.serve(stream, remote, handle).await {
                tracing::debug!(error, "connection ended");
            }
            drop(place);
        });
    }
    drop((listener, server));
    drain.send_replace(true);
    tokio::select! {
        () = drain.closed() => {}
        () = tokio::time::sleep(grace_period) => tracing::warn!("grace period over, requests are cut off"),
    }
    Ok(())
}

/// Waits until the server is told to stop, or nobody is left to tell it.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    // The result borrows the channel; who waits needs only the fact.
    drop(stop.wait_for(|stop| *stop).await);
}

/// Whether the process, or the system, has no file descriptor for another connection.
fn is_out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::MFILE, Errno::NFILE].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// What all connections of a socket have in common.
#[derive(Clone)]
struct Server {
    config: Arc<ServingConfig>,
    handler: Handler,
    max_streams: u32,
    draining: watch::Receiver<bool>,
}

impl Server {
    /// Serves one connection until it is closed.
    async fn serve(
        mut self,
        stream: TcpStream,
        remote: RemoteAddress,
        handle: ConnectionHandle,
    ) -> Result<(), String> {
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let acceptor = TlsAcceptor::from(self.config.tls.current());
        let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(WriteTimeout::new(stream)));
        let stream = tokio::select! {
            handshake = handshake => handshake
                .map_err(|_| "TLS handshake timed out".to_owned())?
                .map_err(|error| error.to_string())?,
            () = handle.severed() => return Err("it gives way to another connection".to_owned()),
        };
        let certificates = stream.get_ref().1.peer_certificates().map(|certificates| {
            PeerCertificates(certificates.iter().map(|der| der.clone().into_owned()).collect())
        });
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let refused = Refused::default();
        let stream = RequestHeads::new(stream, is_http2, refused.clone(), self.config.body_budget.clone());
        // That of HTTP/1; streams of HTTP/2 have their own.
        let cutoff = Cutoff::new(handle.clone());
        let (handler, tracked, stopping) = (self.handler.clone(), handle.clone(), self.draining.clone());
        let (config, connection_cutoff) = (self.config.clone(), cutoff.clone());
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let method = request.method().clone();
            let active = tracked.begin();
            let (certificates, tracked) = (certificates.clone(), tracked.clone());
            let (refused, connection_cutoff) = (refused.clone(), connection_cutoff.clone());
            let (budget, stopping) = (config.body_budget.clone(), stopping.clone());
            let response_budget = config.response_budget.clone();
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
                if method == Method::HEAD {
                    response = without_body(response);
                }
                response = if_there_is_room(response, &method, &response_budget);
                if refused.ends_connection() {
                    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                let cutoff = cutoff::of_this_stream().unwrap_or(connection_cutoff);
                let body = SentBody::of(response, &response_budget, cutoff, active.answered());
                Ok::<_, std::convert::Infallible>(body)
            }
        });
        let builder = self.builder(&handle);
        let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
        let end = tokio::select! {
            biased;
            result = guard(&cutoff, connection.as_mut()) => return ended(result),
            end = handle.end() => end,
            () = stopped(&mut self.draining) => End::GoAway,
        };
        if end == End::GoAway {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                biased;
                result = guard(&cutoff, connection.as_mut()) => return ended(result),
                () = handle.drained() => {}
            }
        }
        Err("it is closed without further notice".to_owned())
    }

    /// What connections speak.
    fn builder(&self, handle: &ConnectionHandle) -> auto::Builder<StreamExecutor> {
        let mut builder = auto::Builder::new(StreamExecutor { connection: handle.clone() });
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
            .max_concurrent_streams(self.max_streams)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(MAX_SEND_BUFFER)
            .max_header_list_size(MAX_HEADERS as u32)
            // A client may give up at once all that it may ask for at once.
            .max_pending_accept_reset_streams(self.max_streams as usize)
            .max_local_error_reset_streams(MAX_LOCAL_RESETS)
            .keep_alive_interval(Duration::from_secs(30))
            .keep_alive_timeout(Duration::from_secs(20));
        builder
    }
}

fn ended<E: std::fmt::Display>(result: Option<Result<(), E>>) -> Result<(), String> {
    match result {
        Some(result) => result.map_err(|error| error.to_string()),
        None => Err("the client did not read a response in time".to_owned()),
    }
}

/// The response, or a refusal when there is no memory for what the client may take its time to read. What a write has
/// done is told in any case.
fn if_there_is_room(response: Response, method: &Method, budget: &ResponseBudget) -> Response {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    match response.body() {
        Body::Full(Some(bytes)) if is_read && !budget.has_room(bytes.len()) => {
            json_failure(&Status::too_many_requests("Too many requests, please try again later.", 1))
        }
        _ => response,
    }
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
