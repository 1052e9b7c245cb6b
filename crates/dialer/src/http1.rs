//! A connection of HTTP/1.1, which carries one request at a time.

use crate::{Cause, Stream, UpstreamBody, unanswered::Unanswered};
use futures_util::future::{Fuse, FusedFuture, FutureExt};
use http::{Request, Response, Uri, uri::PathAndQuery};
use hyper::{body::Incoming, client::conn::http1};
use pintle_supervisor::in_turns;
use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

/// The maximum number of headers of a response.
const MAX_HEADERS: usize = 1000;
/// The maximum number of bytes of the head of a response.
pub(crate) const MAX_HEAD_BYTES: usize = 512 << 10;

/// A connection of HTTP/1.1.
pub(crate) struct Http1 {
    sender: http1::SendRequest<UpstreamBody>,
    connection: Fuse<Pin<Box<http1::Connection<Stream, UpstreamBody>>>>,
}

impl Http1 {
    pub(crate) async fn handshake(stream: Stream) -> Result<Http1, Cause> {
        let (sender, connection) = http1::Builder::new()
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD_BYTES)
            .handshake(stream)
            .await
            .map_err(Cause::of)?;
        Ok(Http1 { sender, connection: Box::pin(connection).fuse() })
    }

    /// Sends a request. The body of the response arrives while the connection is polled.
    pub(crate) async fn send(
        &mut self,
        mut request: Request<UpstreamBody>,
    ) -> Result<Response<Incoming>, Unanswered> {
        set_origin_form(&mut request);
        let mut response = pin!(self.sender.try_send_request(request));
        let connection = &mut self.connection;
        in_turns(poll_fn(|context| {
            if let Poll::Ready(response) = response.as_mut().poll(context) {
                return Poll::Ready(response);
            }
            // A connection that ends wakes the response, and so does everything that it reads.
            let _ = connection.poll_unpin(context);
            response.as_mut().poll(context)
        }))
        .await
        .map_err(Unanswered::from)
    }

    /// Continues to send the request and to receive the response's body.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) {
        let _ = self.connection.poll_unpin(context);
    }

    /// Whether the connection is open and has no request.
    pub(crate) fn is_free(&mut self) -> bool {
        // An event that the connection waits for is also awaited by the next request.
        let context = &mut Context::from_waker(Waker::noop());
        self.connection.poll_unpin(context).is_pending()
            && !self.connection.is_terminated()
            && self.sender.is_ready()
    }
}

/// Reduces the URI to the path and the query, as HTTP/1.1 has it.
fn set_origin_form(request: &mut Request<UpstreamBody>) {
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
}
