//! Discards the rest of request bodies that their handlers did not read to the end.
//!
//! A client that is still sending when the server closes the connection sees a reset and not the response. Therefore
//! the rest of the body is discarded before the response is sent, as Go's server does, within bounds: a client that
//! sends more, or stops sending, loses its connection.

use crate::base::{
    body::{MAX_REQUEST_BYTES, RequestBody},
    body_budget::BodyBudget,
    connection::ConnectionHandle,
    handler::Handler,
    lent_body::LentBody,
    response::Response,
};
use http::{HeaderValue, Request, Version, header};
use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use std::time::Duration;
use tokio::{
    sync::watch,
    time::{Instant, timeout, timeout_at},
};

/// How many bytes of a body are discarded.
const MAX_DROPPED_BYTES: usize = 4 * MAX_REQUEST_BYTES;
/// The time limit for discarding.
const MAX_TIME: Duration = Duration::from_secs(10);
/// The time limit for the next frame.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Answers a request, and discards the unread rest of its body.
pub(super) async fn answer(
    handler: Handler,
    request: Request<Incoming>,
    budget: BodyBudget,
    stopping: watch::Receiver<bool>,
    connection: &ConnectionHandle,
    prepare: impl FnOnce(&mut Request<RequestBody>),
) -> Response {
    let expects = request.headers().contains_key(header::EXPECT);
    let (head, incoming) = request.into_parts();
    let is_http1 = head.version < Version::HTTP_2;
    let (body, mut left) = LentBody::lend(incoming, budget, stopping);
    let mut request = Request::from_parts(head, RequestBody::Incoming(body));
    prepare(&mut request);
    let mut response = handler.call(request).await;
    // A handler that has passed the body to a running task leaves no rest here.
    if let Ok(rest) = left.try_recv() {
        // Anybody can send the body of a refused request slowly: it must not keep other clients out.
        let _neglected = connection.neglect();
        // A client that waits for `100 Continue` does not get it.
        let is_read = (rest.is_wanted || !expects) && Box::pin(discard(rest.incoming)).await;
        if is_http1 && !is_read {
            // The library closes the connection, and does not tell so.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
    response
}

/// Reads the rest of a body; returns whether it came to its end.
async fn discard(mut incoming: Incoming) -> bool {
    let end = Instant::now() + MAX_TIME;
    let mut dropped = 0;
    while dropped <= MAX_DROPPED_BYTES {
        match timeout_at(end, timeout(MAX_PAUSE, incoming.frame())).await {
            Ok(Ok(Some(Ok(frame)))) => dropped += frame.data_ref().map_or(0, Bytes::len),
            Ok(Ok(None)) => return true,
            Ok(Ok(Some(Err(_))) | Err(_)) | Err(_) => return false,
        }
    }
    false
}
