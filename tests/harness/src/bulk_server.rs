//! An extension API server that sends much and computes little, for the measurement of what a proxy costs.

use crate::{ADDRESSES, Error, Server, https_server, wait_for};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderValue, Request, Response, header};
use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};

/// An extension API server behind an API service of a server, on threads of this process, until the process ends. It has
/// to run in a network of its own ([`crate::in_own_network`]), the server with `--enable-aggregator-routing`.
pub struct BulkServer;

/// The port of the first server; each further one has the next.
static PORT: AtomicU16 = AtomicU16::new(28444);
const NAMESPACE: &str = "bulk";
const GROUP_VERSION: &str = "/apis/bulk.example.com/v1";
/// The bytes of one piece of a body.
const PIECE_BYTES: usize = 16 << 10;
const PATIENCE: Duration = Duration::from_secs(60);

impl BulkServer {
    /// The pause between two events of a watch.
    pub const EVENT_PAUSE: Duration = Duration::from_millis(2);

    /// Starts the extension API server, registers it with `server`, and waits until it is available.
    ///
    /// # Errors
    /// When it does not become available.
    pub fn start(server: &Server) -> Result<BulkServer, Error> {
        let name = format!("{NAMESPACE}.{NAMESPACE}.svc");
        let [address, ..] = ADDRESSES;
        let port = PORT.fetch_add(1, Ordering::Relaxed);
        let rounds = Arc::new(Rounds::default());
        let (_, certificate) = https_server::serve((address, port), &name, move |request| {
            let response = answer(&request, &rounds);
            async { response }
        })?;
        register(server, (address, port), &certificate)?;
        wait_for("the extension API server", PATIENCE, || {
            let response = server.client().and_then(|client| client.get(GROUP_VERSION)).ok()?;
            (response.status == 200).then_some(())
        })?;
        Ok(BulkServer)
    }

    /// The path of a response of this many bytes.
    pub fn bytes(count: u64) -> String {
        format!("{GROUP_VERSION}/bytes/{count}")
    }

    /// The path of a watch with this many events, whose first event comes when there are `watches` of this path. They get
    /// each event at the same time.
    pub fn events(count: u32, watches: usize) -> String {
        format!("{GROUP_VERSION}/events/{count}/{watches}?watch=true")
    }
}

/// Creates the service, its endpoints and the API service.
fn register(server: &Server, (address, port): (&str, u16), authority: &str) -> Result<(), Error> {
    let client = server.client()?;
    let create = |path: &str, object: Value| -> Result<(), Error> {
        let response = client.post(path, &object)?;
        match response.status {
            201 => Ok(()),
            status => Err(format!("POST {path}: {status} {}", response.text()).into()),
        }
    };
    create("/api/v1/namespaces", json!({"metadata": {"name": NAMESPACE}}))?;
    create(
        &format!("/api/v1/namespaces/{NAMESPACE}/services"),
        json!({"metadata": {"name": NAMESPACE},
            "spec": {"ports": [{"name": "https", "port": 443, "targetPort": port}]}}),
    )?;
    create(
        &format!("/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"),
        json!({"metadata": {"name": "bulk-1", "labels": {"kubernetes.io/service-name": NAMESPACE}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address]}],
            "ports": [{"name": "https", "port": port}]}),
    )?;
    create(
        "/apis/apiregistration.k8s.io/v1/apiservices",
        json!({"metadata": {"name": "v1.bulk.example.com"},
            "spec": {"group": "bulk.example.com", "version": "v1", "groupPriorityMinimum": 1000,
                "versionPriority": 10, "caBundle": STANDARD.encode(authority),
                "service": {"namespace": NAMESPACE, "name": NAMESPACE}}}),
    )
}

type Frames = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>>;

fn answer(request: &Request<Incoming>, rounds: &Arc<Rounds>) -> Response<StreamBody<Frames>> {
    let path = request.uri().path();
    let segments = path.strip_prefix(GROUP_VERSION).map(|rest| rest.split('/').collect::<Vec<_>>());
    let number = |text: &str| text.parse::<usize>().unwrap_or_default();
    let (length, frames): (_, Frames) = match segments.as_deref() {
        Some(["", "bytes", count]) => {
            let (count, piece) = (number(count), Bytes::from_static(&[b'x'; PIECE_BYTES]));
            let pieces = (0..count.div_ceil(PIECE_BYTES))
                .map(move |index| piece.slice(..PIECE_BYTES.min(count - index * PIECE_BYTES)));
            (Some(count), frames(stream::iter(pieces)))
        }
        Some(["", "events", count, watches]) => {
            (None, frames(Rounds::events(rounds, path, number(count), number(watches))))
        }
        _ => {
            let resources = json!({"kind": "APIResourceList", "apiVersion": "v1",
                "groupVersion": "bulk.example.com/v1", "resources": []});
            let body = Bytes::from(resources.to_string());
            (Some(body.len()), frames(stream::iter([body])))
        }
    };
    let mut response = Response::new(StreamBody::new(frames));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(length) = length {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
    response
}

fn frames(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Frames {
    Box::pin(pieces.map(|piece| Ok(Frame::data(piece))))
}

/// The rounds of events of each path: all watches of a path get an event in each round.
#[derive(Default)]
struct Rounds(Mutex<HashMap<String, Round>>);

struct Round {
    watches: usize,
    number: watch::Sender<usize>,
}

impl Rounds {
    /// The events of one more watch of a path.
    fn events(
        rounds: &Arc<Rounds>,
        path: &str,
        count: usize,
        watches: usize,
    ) -> impl Stream<Item = Bytes> + Send + use<> {
        let mut paths = rounds.0.lock().unwrap_or_else(PoisonError::into_inner);
        let round = paths
            .entry(path.to_owned())
            .or_insert_with(|| Round { watches: 0, number: watch::Sender::new(0) });
        round.watches += 1;
        let number = round.number.subscribe();
        if round.watches == watches
            && let Some(Round { number, .. }) = paths.remove(path)
        {
            tokio::spawn(async move {
                let mut ticks = interval(BulkServer::EVENT_PAUSE);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                for round in 1..=count {
                    ticks.tick().await;
                    number.send_replace(round);
                }
            });
        }
        let event = json!({"type": "MODIFIED", "object": {"metadata": {"name": "x".repeat(900)}}});
        let event = Bytes::from(format!("{event}\n"));
        stream::unfold((0, number), move |(sent, mut number)| {
            let event = event.clone();
            async move {
                if sent == count {
                    return None;
                }
                number.wait_for(|number| *number > sent).await.ok()?;
                Some((event, (sent + 1, number)))
            }
        })
    }
}
