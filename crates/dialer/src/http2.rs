//! A connection of HTTP/2, which requests share.

use crate::{Cause, Stream, UpstreamBody, http1::MAX_HEAD_BYTES, unanswered::Unanswered};
use http::{Request, Response};
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// The maximum number of requests at the same time. Servers should permit this number
/// (<https://www.rfc-editor.org/rfc/rfc9113#section-6.5.2>); a request over a server's limit would wait, behind watches
/// for ever.
const MAX_STREAMS: usize = 100;
/// A connection that brings nothing for this time is asked for a sign of life, and closed without one: the intervals of
/// Kubernetes' clients.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// A connection of HTTP/2. Clones are the same connection, which ends with the last of them and of its requests.
#[derive(Clone)]
pub(crate) struct Http2 {
    sender: http2::SendRequest<UpstreamBody>,
    usage: Arc<Mutex<Usage>>,
}

struct Usage {
    /// The number of requests that have not ended.
    streams: usize,
    /// When the last request ended.
    last: Instant,
}

/// The part that one request has in a connection; dropped when the request has ended.
pub(crate) struct StreamGuard(Arc<Mutex<Usage>>);

impl Drop for StreamGuard {
    fn drop(&mut self) {
        let mut usage = self.0.lock();
        usage.streams -= 1;
        usage.last = Instant::now();
    }
}

impl Http2 {
    pub(crate) async fn handshake(stream: Stream) -> Result<Http2, Cause> {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true)
            .max_header_list_size(MAX_HEAD_BYTES as u32)
            .handshake(stream)
            .await
            .map_err(Cause::of)?;
        // It ends with its last request, or when the server closes it; requests have the errors.
        tokio::spawn(connection);
        let usage = Usage { streams: 0, last: Instant::now() };
        Ok(Http2 { sender, usage: Arc::new(Mutex::new(usage)) })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Whether another request may be sent.
    pub(crate) fn has_room(&self) -> bool {
        self.usage.lock().streams < MAX_STREAMS
    }

    /// Since when the connection has no request; `None` while it has one.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let usage = self.usage.lock();
        (usage.streams == 0).then_some(usage.last)
    }

    pub(crate) async fn send(
        mut self,
        request: Request<UpstreamBody>,
    ) -> Result<(Response<Incoming>, StreamGuard), Unanswered> {
        self.usage.lock().streams += 1;
        let guard = StreamGuard(self.usage.clone());
        if self.sender.ready().await.is_err() {
            return Err(Unanswered::Unsent(Box::new(request)));
        }
        let response = self.sender.try_send_request(request).await?;
        Ok((response, guard))
    }
}
