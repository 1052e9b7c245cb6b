//! One HTTP/2 connection to one member.
//!
//! The library's channel reconnects by itself, and its errors do not say whether a request had been sent. Here a
//! connection is used until it fails, and a failed call says whether the member may have received it: that decides
//! whether a write can be retried.

use super::{
    dialer::EtcdConnection,
    options::{Address, EtcdOptions, Target},
    proto::{self, StatusResponse, path},
};
use crate::{BoxFuture, StorageError};
use http::{Uri, uri::PathAndQuery};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::net::{TcpStream, UnixStream};
use tonic::{Status, Streaming, body::Body, client::Grpc, client::GrpcService};
use tonic_prost::ProstCodec;

/// The idle time after which a keep-alive ping is sent, and the time-out of its answer. etcd treats more than one ping in
/// 5 s as abuse.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(5));
/// The same for the connection to the only member: a write that waits for it has nowhere else to go, and its outcome is
/// unknown when the connection ends.
const KEEP_ALIVE_ALONE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10));

/// The size limit of messages, in bytes: effectively none. etcd limits writes, and a list may have any size.
const MAX_MESSAGE_BYTES: usize = i32::MAX as usize;

/// Makes a member without a leader refuse calls at once, and end its watches.
const REQUIRE_LEADER: (&str, &str) = ("hasleader", "true");

/// An open connection. Cheap to clone.
#[derive(Clone)]
pub(super) struct Connection {
    sender: SendRequest<Body>,
    origin: Uri,
    /// Set when the member does not answer.
    given_up: Arc<AtomicBool>,
    /// The cluster id that the member reported when the connection was made.
    pub(super) cluster_id: u64,
    /// Whether a progress response of the member covers all events that were sent before it.
    pub(super) trusted_progress: bool,
}

/// A failed call.
pub(super) struct Failure {
    pub(super) status: Status,
    /// Whether the member may have received the request.
    pub(super) sent: bool,
}

impl Connection {
    /// Connects, and requests the member's status.
    pub(super) async fn open(target: &Target, options: &EtcdOptions) -> Result<Connection, String> {
        let stream: Box<dyn EtcdConnection> = match (&target.address, &options.dialer) {
            (Address::Unix(path), _) => {
                Box::new(UnixStream::connect(path).await.map_err(|error| error.to_string())?)
            }
            (Address::Tcp(host, port), None) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await;
                let stream = stream.map_err(|error| error.to_string())?;
                // Messages are requests that wait for an answer: delaying them gains nothing.
                stream.set_nodelay(true).map_err(|error| error.to_string())?;
                Box::new(stream)
            }
            (Address::Tcp(..), Some(dialer)) => dialer.dial(&target.to_string()).await?,
        };
        let keep_alive = if options.endpoints.len() == 1 { KEEP_ALIVE_ALONE } else { KEEP_ALIVE };
        let sender = handshake(secure(stream, target, options).await?, keep_alive).await?;
        let origin = target.origin().parse::<Uri>().map_err(|error| error.to_string())?;
        let mut connection = Connection {
            sender,
            origin,
            given_up: Arc::default(),
            cluster_id: 0,
            trusted_progress: options.trust_progress,
        };
        let status: StatusResponse = connection
            .unary(path::STATUS, proto::Nothing {})
            .await
            // A member that refuses this server's certificate does so behind the handshake.
            .map_err(|failure| with_causes(failure.status.message().to_owned(), &failure.status))?;
        if status.is_learner {
            return Err("the member is a learner, which does not serve yet".to_owned());
        }
        connection.cluster_id = status.header.map_or(0, |header| header.cluster_id);
        connection.trusted_progress |= trusts_progress(&status.version);
        Ok(connection)
    }

    /// Whether further calls may be made.
    pub(super) fn is_usable(&self) -> bool {
        !self.sender.is_closed() && !self.given_up.load(Ordering::Acquire)
    }

    /// Prevents further use.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
    }

    /// One request, one response. After a dropped call the request may or may not be carried out.
    pub(super) async fn unary<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Failure>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let sent = Arc::new(AtomicBool::new(false));
        let mut client = self.client(Arc::clone(&sent));
        let codec = ProstCodec::<Q, A>::default();
        let answer = client.unary(with_leader(request), PathAndQuery::from_static(path), codec).await;
        answer
            .map(tonic::Response::into_inner)
            .map_err(|status| Failure { status, sent: sent.load(Ordering::Acquire) })
    }

    /// A watch stream: requests, and their responses.
    pub(super) async fn watch(
        &self,
        requests: tokio::sync::mpsc::UnboundedReceiver<proto::WatchRequest>,
    ) -> Result<Streaming<proto::WatchResponse>, StorageError> {
        let requests = futures_util::stream::unfold(requests, async |mut requests| {
            let request = requests.recv().await?;
            Some((request, requests))
        });
        let mut client = self.client(Arc::default());
        let codec = ProstCodec::<proto::WatchRequest, proto::WatchResponse>::default();
        let answer =
            client.streaming(with_leader(requests), PathAndQuery::from_static(path::WATCH), codec).await;
        answer
            .map(tonic::Response::into_inner)
            .map_err(|status| StorageError::Engine(status.message().to_owned()))
    }

    fn client(&self, sent: Arc<AtomicBool>) -> Grpc<Call> {
        Grpc::with_origin(Call { sender: self.sender.clone(), sent }, self.origin.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }
}

fn with_leader<T>(message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    let (name, value) = REQUIRE_LEADER;
    request.metadata_mut().insert(name, tonic::metadata::MetadataValue::from_static(value));
    request
}

/// Negotiates TLS, if the member has it.
async fn secure(
    stream: Box<dyn EtcdConnection>,
    target: &Target,
    options: &EtcdOptions,
) -> Result<Box<dyn EtcdConnection>, String> {
    let Some(name) = &target.tls else { return Ok(stream) };
    let config = options.tls_config().map_err(|error| error.to_string())?;
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name.clone(), stream).await;
    let stream =
        stream.map_err(|error| pintle_tls::error_text(&error).unwrap_or_else(|| error.to_string()))?;
    Ok(Box::new(stream))
}

/// Negotiates HTTP/2. The stream has one type whatever is below it: the code of the protocol is large, and compiled for each.
async fn handshake(
    stream: Box<dyn EtcdConnection>,
    (interval, answer): (Duration, Duration),
) -> Result<SendRequest<Body>, String> {
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(interval)
        .keep_alive_timeout(answer)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| with_causes(error.to_string(), &error))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to etcd ended");
        }
    });
    Ok(sender)
}

/// A text of the error followed by those of its causes, which the text of an HTTP error does not tell.
fn with_causes(mut text: String, error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.map(ToString::to_string).for_each(|cause| {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    });
    text
}

/// Whether a progress response covers all events sent before it. Earlier versions answered a progress request before
/// events that were still on their way to the same watch.
fn trusts_progress(version: &str) -> bool {
    // A suffix such as `-rc.1` marks a version before the release.
    let is_release = version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let mut numbers = version.split(['.', '-', '+']).map_while(|number| number.parse::<u32>().ok());
    let (major, minor, patch) = (numbers.next(), numbers.next(), numbers.next());
    match (major.unwrap_or(0), minor.unwrap_or(0), patch.unwrap_or(0)) {
        (3, 4, patch) => patch > 31 || patch == 31 && is_release,
        (3, 5, patch) => patch > 13 || patch == 13 && is_release,
        (3, minor, _) => minor >= 6,
        (major, ..) => major > 3,
    }
}

/// The service that carries one call, and records whether it was sent.
struct Call {
    sender: SendRequest<Body>,
    sent: Arc<AtomicBool>,
}

impl GrpcService<Body> for Call {
    type ResponseBody = hyper::body::Incoming;
    type Error = hyper::Error;
    type Future = BoxFuture<'static, Result<http::Response<hyper::body::Incoming>, hyper::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.sender.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let sent = Arc::clone(&self.sent);
        sent.store(true, Ordering::Release);
        let response = self.sender.try_send_request(request);
        Box::pin(async move {
            response.await.map_err(|mut failed| {
                // hyper returns the request if nothing of it was written.
                if failed.take_message().is_some() {
                    sent.store(false, Ordering::Release);
                }
                failed.into_error()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_trusted_from_the_versions_on_that_order_it() {
        let rows = [
            ("3.4.30", false),
            ("3.4.31", true),
            ("3.5.1", false),
            ("3.5.12", false),
            ("3.5.13-rc.0", false),
            ("3.5.13", true),
            ("3.5.14-rc.0", true),
            ("3.6.0-rc.1", true),
            ("3.6.0", true),
            ("3.3.99", false),
            ("4.0.0", true),
            ("2.9.9", false),
            ("", false),
            ("unknown", false),
        ];
        for (version, trusted) in rows {
            assert_eq!(trusts_progress(version), trusted, "{version}");
        }
    }
}
