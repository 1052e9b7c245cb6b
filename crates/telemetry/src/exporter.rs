//! Sends spans to a collector, in batches, beside the requests that they are about.

use crate::messages::{
    ExportTraceServiceRequest, ExportTraceServiceResponse, KeyValue, Resource, ResourceSpans, Scope,
    ScopeSpans, Span, Value,
};
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::UnixStream,
    sync::mpsc,
    time::{Instant, timeout_at},
};
use tonic::{Code, Request, Status, client::Grpc, transport::Channel};
use tonic_prost::ProstCodec;

/// The most spans that wait; further ones are dropped. This and the next three are OpenTelemetry's defaults.
const QUEUE: usize = 2048;
/// The most spans in a request.
const BATCH: usize = 512;
/// How long a span waits for others.
const INTERVAL: Duration = Duration::from_secs(5);
/// The time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The pauses between attempts to send a batch, and how many there are.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const ATTEMPTS: u32 = 4;

const METHOD: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// The end of the queue for spans that have ended.
pub(crate) struct Queue {
    spans: mpsc::Sender<Span>,
    dropped: Arc<AtomicU64>,
}

/// The other end of the queue.
pub struct Receiver {
    spans: mpsc::Receiver<Span>,
    dropped: Arc<AtomicU64>,
}

impl Queue {
    pub(crate) fn new() -> (Queue, Receiver) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let dropped = Arc::<AtomicU64>::default();
        (Queue { spans: sender, dropped: dropped.clone() }, Receiver { spans: receiver, dropped })
    }

    pub(crate) fn add(&self, span: Span) {
        if self.spans.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sends the spans of a queue to a collector.
pub struct Exporter {
    receiver: Receiver,
    channel: Channel,
    resource: Resource,
}

impl Exporter {
    /// An exporter to an endpoint in gRPC's notation, without TLS: `HOST:PORT`, `dns:///HOST:PORT`, `unix:PATH` or
    /// `unix-abstract:NAME`. It connects when there are spans. Must be called on a runtime.
    ///
    /// # Errors
    /// When the endpoint is no address.
    pub fn new(receiver: Receiver, endpoint: &str, resource: &[(&str, String)]) -> Result<Exporter, String> {
        let channel = channel(endpoint)?;
        let attributes = resource.iter().map(|(key, value)| KeyValue::new(key, Value::Text(value.clone())));
        Ok(Exporter { receiver, channel, resource: Resource { attributes: attributes.collect() } })
    }

    /// Exports until the layer is gone or `stop` is done; then it sends what is in the queue, within the time of a request.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut batch = Vec::new();
        loop {
            let is_last = tokio::select! {
                count = self.receiver.spans.recv_many(&mut batch, BATCH) => count == 0,
                () = &mut stop => true,
            };
            if is_last {
                self.receiver.spans.close();
                break;
            }
            let full = Instant::now() + INTERVAL;
            let mut is_over = false;
            while batch.len() < BATCH && !is_over {
                let room = BATCH - batch.len();
                is_over = tokio::select! {
                    more = timeout_at(full, self.receiver.spans.recv_many(&mut batch, room)) => !matches!(more, Ok(1..)),
                    () = &mut stop => true,
                };
            }
            self.export(std::mem::take(&mut batch), ATTEMPTS).await;
        }
        let end = Instant::now() + TIMEOUT;
        while self.receiver.spans.recv_many(&mut batch, BATCH).await > 0 {
            if timeout_at(end, self.export(std::mem::take(&mut batch), 1)).await.is_err() {
                return;
            }
        }
    }

    /// Sends spans; failures are logged, since nothing depends on spans.
    async fn export(&self, spans: Vec<Span>, attempts: u32) {
        let dropped = self.receiver.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(dropped, "spans were dropped: the queue of the exporter was full");
        }
        let count = spans.len();
        let scope = Scope { name: "pintle".to_owned() };
        let message = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![ScopeSpans { scope: Some(scope), spans }],
            }],
        };
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=attempts {
            match self.call(message.clone()).await {
                Ok(response) => {
                    if let Some(refused) =
                        response.partial_success.filter(|refused| refused.rejected_spans > 0)
                    {
                        let (count, why) = (refused.rejected_spans, refused.error_message);
                        tracing::warn!(count, why, "the collector rejected spans");
                    }
                    return;
                }
                Err(status) if attempt < attempts && is_transient(status.code()) => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                Err(status) => {
                    tracing::warn!(count, error = status.message(), "spans could not be exported");
                    return;
                }
            }
        }
    }

    async fn call(&self, message: ExportTraceServiceRequest) -> Result<ExportTraceServiceResponse, Status> {
        let mut client = Grpc::new(self.channel.clone());
        let call = async {
            client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
            let codec = ProstCodec::<ExportTraceServiceRequest, ExportTraceServiceResponse>::default();
            client.unary(Request::new(message), PathAndQuery::from_static(METHOD), codec).await
        };
        let response = tokio::time::timeout(TIMEOUT, call).await;
        let response =
            response.unwrap_or_else(|_| Err(Status::deadline_exceeded("context deadline exceeded")));
        response.map(tonic::Response::into_inner)
    }
}

/// Whether the protocol asks to repeat a request after an answer.
fn is_transient(code: Code) -> bool {
    matches!(
        code,
        Code::Cancelled
            | Code::DeadlineExceeded
            | Code::ResourceExhausted
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unavailable
            | Code::DataLoss
    )
}

fn channel(endpoint: &str) -> Result<Channel, String> {
    if let Some(path) = endpoint.strip_prefix("unix:") {
        let path = path.strip_prefix("//").unwrap_or(path).to_owned();
        return Ok(unix_channel(path));
    }
    if let Some(name) = endpoint.strip_prefix("unix-abstract:") {
        return Ok(unix_channel(format!("\0{}", name.strip_prefix("//").unwrap_or(name))));
    }
    // The authority of `dns://AUTHORITY/HOST` is a name server, which the system's one stands in for.
    let address = match endpoint.strip_prefix("dns:") {
        Some(rest) => match rest.strip_prefix("//") {
            Some(rest) => rest.split_once('/').map_or(rest, |(_, address)| address),
            None => rest,
        },
        None => endpoint,
    };
    let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    // gRPC's default.
    let port = if has_port { "" } else { ":443" };
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{address}{port}"));
    let endpoint = endpoint.map_err(|_| format!("{} is no address", pintle_go_forms::quote(address)))?;
    Ok(endpoint.connect_timeout(TIMEOUT).connect_lazy())
}

/// A channel over a socket; a name that begins with a NUL byte is abstract.
fn unix_channel(path: String) -> Channel {
    let connector = tower::service_fn(move |_: http::Uri| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    tonic::transport::Endpoint::from_static("http://localhost").connect_with_connector_lazy(connector)
}
