//! A connection of HTTP/2, which requests share.
//!
//! Requests are given to the protocol library by the task that awaits the response, and the connection's own task only
//! reads and writes: hyper's client has two more tasks between them, which wake each other up for every request.

mod headers;
mod receiving;
mod sending;

pub(crate) use receiving::{BrokenOff, Receiving};

use crate::{Cause, Stream, UpstreamBody, http1::MAX_HEAD_BYTES, unanswered::Unanswered};
use bytes::Bytes;
use h2::{Ping, PingPong, client};
use http::{Request, Response};
use http_body::Body;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use pintle_tls::{JoinedConnection, JoinedWrites};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::oneshot,
    task::AbortHandle,
    time::{Instant, sleep, timeout},
};

/// The maximum number of requests at the same time. Servers should permit this number
/// (<https://www.rfc-editor.org/rfc/rfc9113#section-6.5.2>); a request over a server's limit would wait, behind watches
/// for ever.
const MAX_STREAMS: usize = 100;
/// A connection is asked for a sign of life after this time, and closed without one: the intervals of Kubernetes'
/// clients.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// How much a server may send before it is read, of one response and of all.
const STREAM_WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 5 << 20;
/// How much of requests' bodies waits to be sent, at most, of each request.
const SEND_BUFFER: usize = 1 << 20;

/// A connection of HTTP/2. Clones are the same connection, which ends with the last of them and of its requests.
#[derive(Clone)]
pub(crate) struct Http2 {
    sender: client::SendRequest<Bytes>,
    usage: Arc<Mutex<Usage>>,
}

struct Usage {
    /// The number of requests that have not ended.
    streams: usize,
    /// When the last request ended.
    last: Instant,
    /// Whether the connection takes no more requests.
    is_closed: bool,
    /// Tells the connection's task, by being dropped, that nobody uses the connection any longer.
    _in_use: oneshot::Sender<()>,
}

/// A connection with a place for one request.
pub(crate) struct Reserved {
    sender: client::SendRequest<Bytes>,
    guard: StreamGuard,
}

/// The part that one request has in a connection; dropped when the request has ended.
pub(crate) struct StreamGuard {
    usage: Arc<Mutex<Usage>>,
    /// The task that sends the body. A request that has its whole response is over, and so is one that is dropped.
    sending: Option<AbortHandle>,
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        if let Some(sending) = &self.sending {
            sending.abort();
        }
        let mut usage = self.usage.lock();
        usage.streams -= 1;
        usage.last = Instant::now();
    }
}

impl Http2 {
    pub(crate) async fn handshake(stream: Stream) -> Result<Http2, Cause> {
        let (stream, joint) = JoinedWrites::joining(TokioIo::new(stream));
        let (sender, mut connection) = client::Builder::new()
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(MAX_HEAD_BYTES as u32)
            .max_send_buffer_size(SEND_BUFFER)
            .handshake(stream)
            .await
            .map_err(cause_of)?;
        let ping_pong = connection.ping_pong();
        let (in_use, unused) = oneshot::channel();
        let usage = Usage { streams: 0, last: Instant::now(), is_closed: false, _in_use: in_use };
        let usage = Arc::new(Mutex::new(usage));
        let weak = Arc::downgrade(&usage);
        let used = weak.clone();
        let is_busy = move || used.upgrade().is_some_and(|usage| usage.lock().streams > 1);
        let connection = JoinedConnection::new(connection, Some(joint), is_busy);
        tokio::spawn(async move {
            tokio::select! {
                biased;
                // Requests have the errors.
                _ = connection => {}
                _ = unused => {}
                () = silence(ping_pong) => {}
            }
            if let Some(usage) = weak.upgrade() {
                usage.lock().is_closed = true;
            }
        });
        Ok(Http2 { sender, usage })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.usage.lock().is_closed
    }

    /// A place for another request, if there is room.
    pub(crate) fn reserve(&self) -> Option<Reserved> {
        {
            let mut usage = self.usage.lock();
            if usage.streams >= MAX_STREAMS {
                return None;
            }
            usage.streams += 1;
        }
        let guard = StreamGuard { usage: self.usage.clone(), sending: None };
        Some(Reserved { sender: self.sender.clone(), guard })
    }

    /// Since when the connection has no request; `None` while it has one.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let usage = self.usage.lock();
        (usage.streams == 0).then_some(usage.last)
    }
}

impl Reserved {
    pub(crate) async fn send(
        self,
        mut request: Request<UpstreamBody>,
    ) -> Result<(Response<Receiving>, StreamGuard), Unanswered> {
        let mut guard = self.guard;
        let Ok(mut sender) = self.sender.ready().await else {
            // The server has said that it closes the connection, or has closed it.
            guard.usage.lock().is_closed = true;
            return Err(Unanswered::Unsent(Box::new(request)));
        };
        headers::prepare(&mut request);
        let (head, body) = request.into_parts();
        let is_whole = body.is_end_stream();
        let sent = sender.send_request(Request::from_parts(head, ()), is_whole);
        let (response, stream) = sent.map_err(|error| Unanswered::Failed(cause_of(error)))?;
        if !is_whole {
            guard.sending = sending::send(body, stream);
        }
        let response = response.await.map_err(|error| Unanswered::Failed(cause_of(error)))?;
        let (head, stream) = response.into_parts();
        let body = Receiving::new(stream, &head);
        Ok((Response::from_parts(head, body), guard))
    }
}

/// Waits until a server that is asked for a sign of life gives none.
async fn silence(ping_pong: Option<PingPong>) {
    let Some(mut ping_pong) = ping_pong else { return std::future::pending().await };
    loop {
        sleep(PING_INTERVAL).await;
        match timeout(PING_TIMEOUT, ping_pong.ping(Ping::opaque())).await {
            Ok(Ok(_)) => {}
            _ => return,
        }
    }
}

/// The reason why there is no response.
fn cause_of(error: h2::Error) -> Cause {
    match error.reason() {
        // The server has done nothing with the request (https://www.rfc-editor.org/rfc/rfc9113#section-8.7).
        Some(h2::Reason::REFUSED_STREAM) => Cause::Closed,
        _ => Cause::of(BrokenOff::from(error)),
    }
}
