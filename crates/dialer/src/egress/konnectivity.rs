//! Connects through a konnectivity server over gRPC
//! (<https://github.com/kubernetes-sigs/apiserver-network-proxy>).
//!
//! ```text
//! this server          konnectivity server
//!   DIAL_REQ ──────────────>
//!            <────────────── DIAL_RSP | DIAL_CLS
//!   DATA    <──────────────> DATA
//!   CLOSE_REQ ─────────────>
//!            <────────────── CLOSE_RSP
//! ```
//!
//! A gRPC stream carries one connection, as in Kubernetes, so that HTTP/2's flow control is that of the connection: a
//! packet is read when the packet before it was read to the end.

mod connection;
mod metrics;
pub(super) mod packet;

use super::{
    dial_timeout::{DIAL_TIMEOUT, timed_out},
    metrics::Stage,
};
use crate::{Cause, direct, link::Tunnel};
use connection::{Connection, Sending};
use http::{Uri, uri::PathAndQuery};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
pub(super) use metrics::KonnectivityMetrics;
use metrics::{DialFailure, Segment};
use packet::{DialRequest, Packet, Payload};
use pintle_registry::BoxFuture;
use std::{
    path::PathBuf,
    task::{Context, Poll},
    time::{Duration, Instant},
};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout_at},
};
use tonic::{Streaming, body::Body, client::Grpc, client::GrpcService};
use tonic_prost::ProstCodec;

const PROXY: &str = "/ProxyService/Proxy";

/// The most bytes of a packet; agents send 32 KiB.
const MAX_PACKET_BYTES: usize = 256 << 10;
/// The bytes that the server may send before they are read.
const WINDOW: u32 = 64 << 10;
/// The bytes that are kept until the server accepts them.
const MAX_SEND_BUFFER: usize = 64 << 10;

/// The first and the longest pause between attempts to connect.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// A konnectivity server behind a Unix socket.
pub(super) struct Konnectivity {
    socket: PathBuf,
    metrics: KonnectivityMetrics,
}

impl Konnectivity {
    pub(super) fn new(socket: PathBuf, metrics: KonnectivityMetrics) -> Konnectivity {
        Konnectivity { socket, metrics }
    }

    /// Opens an HTTP/2 connection to the server. While it does not accept one, because it is being restarted, the
    /// attempts are repeated, as by a gRPC client, for [`DIAL_TIMEOUT`].
    pub(super) async fn connect(&self) -> Result<SendRequest<Body>, Cause> {
        let deadline = tokio::time::Instant::now() + DIAL_TIMEOUT;
        let mut pause = PAUSES.0;
        loop {
            let error = match timeout_at(deadline, self.connect_once()).await {
                Ok(Ok(sender)) => return Ok(sender),
                Ok(Err(error)) => error,
                Err(_) => return Err(timed_out(Stage::Connect)),
            };
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            if left.is_zero() {
                let why =
                    "context deadline exceeded: connection error: desc = \"transport: Error while dialing: ";
                return Err(Cause::Other(format!("{why}{error}\"")));
            }
            sleep(pause.min(left)).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    async fn connect_once(&self) -> Result<SendRequest<Body>, Cause> {
        let stream = direct::unix(&self.socket).await?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_send_buf_size(MAX_SEND_BUFFER)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Cause::Other(error.to_string()))?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a konnectivity server ended");
            }
        });
        Ok(sender)
    }

    /// Requests a connection to an address.
    pub(super) async fn tunnel(
        &self,
        sender: SendRequest<Body>,
        address: &str,
    ) -> Result<Box<dyn Tunnel>, Cause> {
        let unfinished = Unfinished { metrics: &self.metrics, begun: Instant::now() };
        let dialed = self.dial(sender, address).await;
        std::mem::forget(unfinished);
        dialed.map_err(|(failure, cause)| {
            self.metrics.dial_failed(failure);
            cause
        })
    }

    async fn dial(
        &self,
        sender: SendRequest<Body>,
        address: &str,
    ) -> Result<Box<dyn Tunnel>, (DialFailure, Cause)> {
        let mut count = self.metrics.dialing();
        // Identifies the dial for the server's agents.
        let random = rand::random_range(1..i64::MAX);
        let (packets, requests) = mpsc::channel(1);
        let mut sending = Sending::new(packets, self.metrics.clone());
        let dial = DialRequest { protocol: "tcp".to_owned(), address: address.to_owned(), random };
        sending.send(Packet::of(Payload::DialRequest(dial))).await.map_err(|_| closed())?;
        let requests = futures_util::stream::unfold(requests, async |mut requests| {
            let request: Packet = requests.recv().await?;
            Some((request, requests))
        });
        let origin = Uri::from_static("http://localhost");
        let codec = ProstCodec::<Packet, Packet>::default();
        let path = PathAndQuery::from_static(PROXY);
        let mut grpc = Grpc::with_origin(Call(sender), origin).max_decoding_message_size(MAX_PACKET_BYTES);
        let failed = |status: &tonic::Status| {
            self.metrics.stream_failed(status);
            tracing::debug!(%status, "a konnectivity server failed");
            closed()
        };
        let answer = grpc.streaming(tonic::Request::new(requests), path, codec).await;
        let mut packets: Streaming<Packet> = answer.map_err(|status| failed(&status))?.into_inner();
        let packet = loop {
            let packet = packets.message().await.map_err(|status| failed(&status))?;
            if let Some(packet) = &packet {
                self.metrics.packet(Segment::ToClient, packet.packet_type);
            }
            // Hints and the ends of other connections are no answer, as for Kubernetes' client.
            match packet {
                Some(Packet { payload: None | Some(Payload::CloseResponse(_)), .. }) => {}
                other => break other,
            }
        };
        match packet.and_then(|packet| packet.payload) {
            Some(Payload::DialResponse(response)) if response.random == random => {
                match response.error.is_empty() {
                    true => {
                        count.connected();
                        Ok(Box::new(Connection::new(response.connect_id, packets, sending, count)))
                    }
                    false => Err((DialFailure::Endpoint, Cause::Other(response.error))),
                }
            }
            Some(Payload::CloseDial(_)) => {
                Err((DialFailure::DialClosed, Cause::Other("dial closed".to_owned())))
            }
            // All other packets are about no dial of this stream.
            _ => Err(closed()),
        }
    }
}

/// Counts a dial whose future is dropped.
struct Unfinished<'a> {
    metrics: &'a KonnectivityMetrics,
    begun: Instant,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.metrics.dial_failed(match self.begun.elapsed() >= DIAL_TIMEOUT {
            true => DialFailure::Timeout,
            false => DialFailure::Context,
        });
    }
}

fn closed() -> (DialFailure, Cause) {
    (DialFailure::TunnelClosed, Cause::Other("tunnel closed".to_owned()))
}

/// The service that carries the stream.
struct Call(SendRequest<Body>);

impl GrpcService<Body> for Call {
    type ResponseBody = hyper::body::Incoming;
    type Error = hyper::Error;
    type Future = BoxFuture<'static, Result<http::Response<hyper::body::Incoming>, hyper::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
