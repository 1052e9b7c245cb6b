//! Serves sockets: TLS, HTTP/1.1 and HTTP/2, and a graceful shutdown.
//!
//! When `stop` becomes true, [`serve`] accepts no new connections, lets requests in flight finish (watch handlers end
//! on the same signal), and returns when the last connection is closed or the grace period is over.
//!
//! **No client can hold the server up**: handshakes, heads, idle connections and responses have time limits; headers,
//! unsent responses, connections and the requests of a connection are bounded; and a client that resets one request
//! after another loses its connection.

mod check;
mod connections;
mod cutoff;
pub mod debug_socket;
mod frames;
mod head_budget;
mod http1;
mod plain;
mod reason;
mod response_budget;
mod sent_body;
mod step;
pub mod tls;
mod unread;
mod upgradable;
mod websocket;
mod write_timeout;

use crate::base::{
    body::{Body, RequestBody},
    body_budget::{BodyBudget, Charge, DEFAULT_BODY_MEMORY},
    connection::{ConnectionHandle, End},
    connection_lease::ConnectionLease,
    handler::Handler,
    peer::{PeerCertificates, RemoteAddress},
    recurrence::Recurrence,
    response::{Response, json_failure},
};
use check::{Unexecuted, check};
use connections::{Connections, Place};
use cutoff::{Cutoff, StreamExecutor, guard};
use head_budget::{DEFAULT_HEAD_MEMORY, HeadBudget};
use http::{HeaderValue, Method, StatusCode, header};
use http_body::Body as _;
use http1::{RequestHeads, Requests};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto,
};
use pintle_http1::head::{MAX_HEAD_BYTES, MAX_HEADER_BYTES, MAX_HEADERS};
use pintle_machinery::Status;
use pintle_tls::{JoinedConnection, JoinedWrites, ReadAhead, WholeReads};
use plain::refuse_plain;
use prometheus::IntCounter;
use rustls::server::Acceptor;
use sent_body::SentBody;
use std::{io, pin::pin, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::LazyConfigAcceptor;
use upgradable::Upgradable;
use write_timeout::WriteTimeout;

pub use crate::base::stop::stopped;
pub use response_budget::{DEFAULT_RESPONSE_MEMORY, ResponseBudget};

/// The configuration of a served socket.
#[non_exhaustive]
pub struct ServingConfig {
    /// Certificates and trusted client authorities; each new connection gets the current ones.
    pub tls: Arc<tls::ServingTls>,
    /// The maximum of concurrent streams on one HTTP/2 connection; zero is the default of 100.
    pub http2_max_streams_per_connection: u32,
    /// Becomes true when streams, such as those of commands, have to end. They may outlast the stop of the port.
    pub ending: watch::Receiver<bool>,
    /// How long requests in flight may take after the stop.
    pub grace_period: Duration,
    /// The memory budget of request bodies in flight.
    pub body_budget: BodyBudget,
    /// The memory budget of unsent responses.
    pub response_budget: ResponseBudget,
    /// The maximum of open connections.
    pub max_connections: usize,
    /// Counts failed TLS handshakes.
    pub tls_handshake_errors: IntCounter,
}

impl ServingConfig {
    /// Serves up to 10,000 connections, with the default budgets, and gives requests ten seconds to end after the stop.
    pub fn new(
        tls: Arc<tls::ServingTls>,
        ending: watch::Receiver<bool>,
        tls_handshake_errors: IntCounter,
    ) -> ServingConfig {
        ServingConfig {
            tls,
            http2_max_streams_per_connection: 0,
            ending,
            grace_period: Duration::from_secs(10),
            body_budget: BodyBudget::new(DEFAULT_BODY_MEMORY),
            response_budget: ResponseBudget::new(DEFAULT_RESPONSE_MEMORY),
            max_connections: 10_000,
            tls_handshake_errors,
        }
    }
}

/// The time limit of the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long requests are served that cross the GOAWAY on their way, unless the client acknowledges it. A client that does
/// not would keep its connection for ever, and with it what the end of the connection protects from. As long as Go's
/// server waits.
const LATE_REQUESTS: Duration = Duration::from_secs(1);
/// The maximum of concurrent HTTP/2 streams; Kubernetes' default.
const MAX_CONCURRENT_STREAMS: u32 = 100;
/// The burst of resets that a client may send, per allowed stream. Go's server closes connections at this number.
const RESETS_PER_STREAM: u32 = 4;
/// How many streams the server may reset for the client's errors before it closes the connection.
const MAX_LOCAL_RESETS: usize = 1024;
/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How many bytes of bodies a client may send before they are read, for a stream and for a connection. A stream has as
/// many as in kube-apiserver; those of a connection are memory that nothing else bounds.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
const MAX_SEND_BUFFER: usize = 256 << 10;

/// Serves a socket until `stop` becomes true. Errors of the socket are logged, and connections are accepted again after a
/// pause.
pub async fn serve(
    listener: TcpListener,
    config: ServingConfig,
    handler: Handler,
    mut stop: watch::Receiver<bool>,
) {
    let max_streams = match config.http2_max_streams_per_connection {
        0 => MAX_CONCURRENT_STREAMS,
        given => given,
    };
    let grace_period = config.grace_period;
    let connections = Connections::new(config.max_connections);
    let (mut failures, mut refusals) = (Recurrence::default(), Recurrence::default());
    // Each connection holds a receiver until it is closed.
    let (drain, draining) = watch::channel(false);
    let heads = HeadBudget::new(DEFAULT_HEAD_MEMORY);
    let server = Server { config: Arc::new(config), heads, handler, max_streams, draining };
    loop {
        let (stream, remote) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, remote)) => (stream, RemoteAddress(remote)),
                Err(error) => {
                    // The client disconnected, or no file descriptor is left; in the second case idle connections are
                    // closed.
                    let evicted = if is_out_of_descriptors(&error) { connections.evict() } else { 0 };
                    if let Some(failures) = failures.due() {
                        tracing::warn!(%error, evicted, failures, "accept failed");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
            () = stopped(&mut stop) => break,
        };
        let handle = ConnectionHandle::new(max_streams.saturating_mul(RESETS_PER_STREAM));
        let Some(place) = connections.admit(handle.clone()) else {
            if let Some(refused) = refusals.due() {
                tracing::warn!(refused, "connections are refused: there are too many, and all have requests");
            }
            continue;
        };
        let server = server.clone();
        tokio::spawn(async move {
            if let Err(error) = server.serve(stream, remote, handle, Arc::new(place)).await {
                tracing::debug!(error, "connection ended");
            }
        });
    }
    drop((listener, server));
    drain.send_replace(true);
    tokio::select! {
        () = drain.closed() => {}
        () = tokio::time::sleep(grace_period) => tracing::warn!("grace period over, requests are cut off"),
    }
}

/// Whether the process or the system has no file descriptor left.
fn is_out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::MFILE, Errno::NFILE].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// The state that all connections of a socket share.
#[derive(Clone)]
struct Server {
    config: Arc<ServingConfig>,
    heads: HeadBudget,
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
        place: Arc<Place>,
    ) -> Result<(), String> {
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let handshake = async {
            let mut stream = stream;
            refuse_plain(&mut stream).await?;
            let stream = ReadAhead::new(WriteTimeout::new(stream));
            let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
            let config = self.config.tls.for_client(&start.client_hello());
            start.into_stream(config).await
        };
        let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake);
        let stream = tokio::select! {
            handshake = handshake => handshake
                .map_err(|_| "TLS handshake timed out".to_owned())
                .and_then(|handshake| handshake.map_err(|error| error.to_string()))
                .inspect_err(|_| self.config.tls_handshake_errors.inc())?,
            () = handle.severed() => return Err("it gives way to another connection".to_owned()),
        };
        let certificates = stream.get_ref().1.peer_certificates().map(|certificates| {
            PeerCertificates(certificates.iter().map(|der| der.clone().into_owned()).collect())
        });
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let requests = Requests::default();
        let stream = WholeReads::new(stream);
        let stream =
            RequestHeads::new(stream, is_http2, requests.clone(), self.heads.clone(), handle.clone());
        // A connection of HTTP/1 has one response at a time, which is written at once.
        let (stream, joint) = match is_http2 {
            true => {
                let (stream, joint) = JoinedWrites::joining(stream);
                (stream, Some(joint))
            }
            false => (JoinedWrites::passing(stream), None),
        };
        // The cutoff of HTTP/1; HTTP/2 streams have their own.
        let cutoff = Cutoff::new(handle.clone());
        let (handler, tracked, stopping) = (self.handler.clone(), handle.clone(), self.draining.clone());
        let (config, connection_cutoff) = (self.config.clone(), cutoff.clone());
        let acknowledging = requests.clone();
        // Upgraded connections remain open connections.
        let lease = ConnectionLease::new(
            handle.clone(),
            Arc::new((place, self.draining.clone())),
            self.config.ending.clone(),
        );
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let method = request.method().clone();
            let active = tracked.begin();
            let (certificates, tracked) = (certificates.clone(), tracked.clone());
            let (requests, connection_cutoff) = (requests.clone(), connection_cutoff.clone());
            let (budget, stopping) = (config.body_budget.clone(), stopping.clone());
            let lease = lease.clone();
            let upgradable = Upgradable {
                on_upgrade: request.extensions().get().cloned(),
                handle: tracked.clone(),
                lease: lease.clone(),
            };
            let response_budget = config.response_budget.clone();
            let answer = check(&request, &requests, &budget).map(|charge| {
                let charge = charge.map(Arc::new);
                let charge_of_request = charge.clone().map(HeadCharged);
                // The future of the stream would hold it twice.
                let (handler, connection) = (handler.clone(), tracked.clone());
                let prepare = move |request: &mut http::Request<RequestBody>| {
                    request.extensions_mut().insert(remote);
                    if let Some(certificates) = certificates {
                        request.extensions_mut().insert(certificates);
                    }
                    request.extensions_mut().insert(tracked);
                    request.extensions_mut().insert(lease);
                    // Handlers may go on when the client is gone.
                    if let Some(charge) = charge_of_request {
                        request.extensions_mut().insert(charge);
                    }
                };
                let answer = async move {
                    unread::answer(handler, request, budget, stopping, &connection, prepare).await
                };
                (Box::pin(answer), charge)
            });
            async move {
                let mut response = match answer {
                    Ok((answer, _charge)) => answer.await,
                    Err(Unexecuted::Response(response)) => *response,
                    Err(Unexecuted::Reset(reason)) => {
                        // The client has not given the request up.
                        drop(active.answered());
                        return Err(h2::Error::from(reason));
                    }
                };
                if method == Method::HEAD {
                    response = without_body(response);
                }
                response = if_there_is_room(response, &method, &response_budget);
                response = upgradable.switch(response, &response_budget);
                reason::name_status(&mut response);
                requests.answered(response.status() == StatusCode::SWITCHING_PROTOCOLS);
                if requests.ends_connection() {
                    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                let cutoff = cutoff::of_this_stream().unwrap_or(connection_cutoff);
                let body = SentBody::of(response, &response_budget, cutoff, active.answered());
                Ok::<_, h2::Error>(body)
            }
        });
        let builder = self.builder(&handle);
        let connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
        let has_requests = handle.clone();
        let mut connection =
            JoinedConnection::new(connection, joint, move || has_requests.has_several_requests());
        let end = tokio::select! {
            biased;
            result = guard(&cutoff, std::pin::Pin::new(&mut connection)) => return ended(result),
            end = handle.end() => end,
            () = stopped(&mut self.draining) => End::GoAway,
        };
        if end == End::GoAway {
            connection.get_mut().as_mut().graceful_shutdown();
            let acknowledge = async {
                tokio::time::sleep(LATE_REQUESTS).await;
                acknowledging.acknowledge_end();
                std::future::pending::<()>().await;
            };
            tokio::select! {
                biased;
                () = acknowledge => {}
                result = guard(&cutoff, std::pin::Pin::new(&mut connection)) => return ended(result),
                () = handle.drained() => {}
            }
        }
        Err("it is closed without further notice".to_owned())
    }

    /// The connection builder, with its limits.
    fn builder(&self, handle: &ConnectionHandle) -> auto::Builder<StreamExecutor> {
        let mut builder = auto::Builder::new(StreamExecutor { connection: handle.clone() });
        builder
            .http1()
            .timer(TokioTimer::new())
            // `RequestHeads` passes whole heads and limits their time; `IDLE_TIMEOUT` limits the time without one.
            .header_read_timeout(None)
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD_BYTES);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.max_streams)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(MAX_SEND_BUFFER)
            .max_header_list_size(MAX_HEADER_BYTES as u32)
            // Before their handlers start; Go's server allows as many.
            .max_pending_accept_reset_streams(self.max_streams.saturating_mul(RESETS_PER_STREAM) as usize)
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

/// The charge of a large head; an extension of the request.
#[derive(Clone)]
struct HeadCharged(#[expect(dead_code, reason = "kept for what its drop does")] Arc<Charge>);

/// The response, or 429 when the budget has no room for its body. The response to a write is sent in any case.
fn if_there_is_room(response: Response, method: &Method, budget: &ResponseBudget) -> Response {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    match response.body() {
        Body::Full(Some(bytes)) if is_read && !budget.has_room(bytes.len()) => {
            json_failure(&Status::too_many_requests("Too many requests, please try again later.", 1))
        }
        _ => response,
    }
}

/// The response to a HEAD, without the body, which HTTP/2 clients treat as a stream error.
fn without_body(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    // The length of another server's body is in its header, or unknown. Go's server does not tell that a body is empty.
    let length = body.size_hint().exact().filter(|length| *length > 0 && !matches!(body, Body::Foreign(_)));
    if let Some(length) = length {
        parts.headers.entry(header::CONTENT_LENGTH).or_insert(HeaderValue::from(length));
    }
    Response::from_parts(parts, Body::empty())
}
