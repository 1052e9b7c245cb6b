//! Bodies that a request's handler did not want to the end.
//!
//! A client that is still sending sees a broken connection, and not the answer, when the server closes it. So what comes
//! is thrown away before the answer goes out, as Go's server does, within bounds: who sends more, or stops sending, loses
//! the connection.

use crate::{
    body::{MAX_REQUEST_BYTES, RequestBody},
    filters::Handler,
    response::Response,
};
use http::{Request, header};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use std::time::Duration;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout, timeout_at},
};

/// How much of a body is thrown away.
const MAX_DROPPED_BYTES: usize = 4 * MAX_REQUEST_BYTES;
/// How long that may take.
const MAX_TIME: Duration = Duration::from_secs(10);
/// How long the next piece may take.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// A body from the network, lent to a handler. What it has not read when it is dropped is thrown away.
pub struct LentBody {
    incoming: Option<Incoming>,
    is_wanted: bool,
    rest: Option<oneshot::Sender<Rest>>,
}

struct Rest {
    incoming: Incoming,
    is_wanted: bool,
}

impl LentBody {
    /// How many bytes there are at least.
    pub(crate) fn min_size(&self) -> u64 {
        self.incoming.as_ref().map_or(0, |incoming| incoming.size_hint().lower())
    }

    /// The next piece.
    pub(crate) async fn frame(&mut self) -> Option<Result<Frame<Bytes>, hyper::Error>> {
        self.is_wanted = true;
        self.incoming.as_mut()?.frame().await
    }
}

impl Drop for LentBody {
    fn drop(&mut self) {
        let unread = self.incoming.take().filter(|incoming| !incoming.is_end_stream());
        if let (Some(incoming), Some(rest)) = (unread, self.rest.take()) {
            // Nobody may be there any more who cares.
            drop(rest.send(Rest { incoming, is_wanted: self.is_wanted }));
        }
    }
}

/// Answers a request, and reads what the handler did not want of its body.
pub(super) async fn answer(
    handler: Handler,
    request: Request<Incoming>,
    prepare: impl FnOnce(&mut Request<RequestBody>),
) -> Response {
    let expects = request.headers().contains_key(header::EXPECT);
    let (rest, left) = oneshot::channel();
    let lend = |incoming| LentBody { incoming: Some(incoming), is_wanted: false, rest: Some(rest) };
    let mut request = request.map(|incoming| RequestBody::Incoming(lend(incoming)));
    prepare(&mut request);
    let response = handler.call(request).await;
    // Where the handler has left the body to somebody who is still at it, there is nothing here.
    let mut left = left;
    if let Ok(rest) = left.try_recv()
        // A client that has to be asked for its body is not asked.
        && (rest.is_wanted || !expects)
    {
        discard(rest.incoming).await;
    }
    response
}

async fn discard(mut incoming: Incoming) {
    let end = Instant::now() + MAX_TIME;
    let mut dropped = 0;
    while dropped <= MAX_DROPPED_BYTES {
        match timeout_at(end, timeout(MAX_PAUSE, incoming.frame())).await {
            Ok(Ok(Some(Ok(frame)))) => dropped += frame.data_ref().map_or(0, Bytes::len),
            Ok(Ok(Some(Err(_)) | None) | Err(_)) | Err(_) => return,
        }
    }
}
