//! The kept connections to one webhook.
//!
//! An HTTP/1.1 connection belongs to the request that uses it, which also polls the connection: a request wakes no other
//! task. Nothing polls an idle connection. It is polled once before it is used again, which shows whether the webhook
//! has closed it. An HTTP/2 connection is shared and has a task of its own.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use futures_util::future::{Fuse, FusedFuture, FutureExt};
use http::{HeaderValue, Request, Uri, header, response, uri::PathAndQuery};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{
    Response,
    body::Incoming,
    client::conn::{TrySendError, http1, http2},
};
use hyper_util::{
    client::legacy::connect::Connection as _,
    rt::{TokioExecutor, TokioTimer},
};
use parking_lot::Mutex;
use pintle_dialer::{Cause, Connector, Stream};
use pintle_supervisor::in_turns;
use std::{
    future::poll_fn,
    io::ErrorKind,
    pin::{Pin, pin},
    sync::{Arc, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::time::Instant;

/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// The maximum number of idle connections.
const MAX_IDLE: usize = 25;

type Body = Full<Bytes>;

/// The connections to one webhook.
pub(crate) struct Connections {
    connector: Connector,
    idle: Arc<Idle>,
    http2: Mutex<Option<http2::SendRequest<Body>>>,
}

/// A response whose whole body was read.
pub(crate) struct Answer {
    pub(crate) head: response::Parts,
    pub(crate) body: Bytes,
}

/// A new or an idle connection.
enum Connection {
    Http1(Http1),
    Http2(http2::SendRequest<Body>),
}

/// Why a request has no answer.
enum Unanswered {
    /// The kept connection was closed before the request was sent.
    Unsent(Box<Request<Body>>),
    Failed(Cause),
}

impl Connections {
    /// No connections yet.
    pub(crate) fn new(connector: Connector) -> Connections {
        Connections { connector, idle: Arc::default(), http2: Mutex::default() }
    }

    /// Sends a request with an absolute URI over a kept connection or a new one. The body of the response has at most
    /// `limit` bytes.
    ///
    /// When the future is dropped, its HTTP/1.1 connection is closed.
    pub(crate) async fn send(&self, mut request: Request<Body>, limit: usize) -> Result<Answer, Cause> {
        let uri = request.uri().clone();
        while let Some(connection) = self.kept() {
            match self.send_over(connection, request, limit).await {
                Ok(answer) => return Ok(answer),
                Err(Unanswered::Failed(cause)) => return Err(cause),
                Err(Unanswered::Unsent(unsent)) => request = *unsent,
            }
            *request.uri_mut() = uri.clone();
        }
        let connection = self.connect(&uri).await?;
        match self.send_over(connection, request, limit).await {
            Ok(answer) => Ok(answer),
            Err(Unanswered::Failed(cause)) => Err(cause),
            Err(Unanswered::Unsent(_)) => Err(Cause::Closed),
        }
    }

    /// A kept connection, if one is open.
    fn kept(&self) -> Option<Connection> {
        let mut http2 = self.http2.lock();
        *http2 = http2.take().filter(|sender| !sender.is_closed());
        if let Some(sender) = &*http2 {
            return Some(Connection::Http2(sender.clone()));
        }
        drop(http2);
        self.idle.take().map(Connection::Http1)
    }

    async fn connect(&self, uri: &Uri) -> Result<Connection, Cause> {
        let stream = self.connector.clone().connect(uri.clone()).await.map_err(|cause| match cause {
            Cause::Dial { error, .. } | Cause::Tls(error) if error.kind() == ErrorKind::ConnectionReset => {
                Cause::Reset
            }
            cause => cause,
        })?;
        if stream.connected().is_negotiated_h2() {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            let (sender, connection) =
                builder.timer(TokioTimer::new()).handshake(stream).await.map_err(Cause::of)?;
            // The connection ends with its last request, or when the webhook closes it; requests have the errors.
            tokio::spawn(connection);
            *self.http2.lock() = Some(sender.clone());
            return Ok(Connection::Http2(sender));
        }
        let (sender, connection) = http1::handshake(stream).await.map_err(Cause::of)?;
        Ok(Connection::Http1(Http1 { sender, connection: Box::pin(connection).fuse() }))
    }

    async fn send_over(
        &self,
        connection: Connection,
        request: Request<Body>,
        limit: usize,
    ) -> Result<Answer, Unanswered> {
        match connection {
            Connection::Http1(mut connection) => {
                let answer = connection.send(request, limit).await?;
                self.idle.keep(connection);
                Ok(answer)
            }
            Connection::Http2(mut sender) => {
                if sender.ready().await.is_err() {
                    return Err(Unanswered::Unsent(Box::new(request)));
                }
                let response = sender.try_send_request(request).await.map_err(unanswered)?;
                read(response, limit).await.map_err(Unanswered::Failed)
            }
        }
    }
}

/// An HTTP/1.1 connection.
struct Http1 {
    sender: http1::SendRequest<Body>,
    connection: Fuse<Pin<Box<http1::Connection<Stream, Body>>>>,
}

impl Http1 {
    async fn send(&mut self, mut request: Request<Body>, limit: usize) -> Result<Answer, Unanswered> {
        set_host(&mut request);
        set_origin_form(&mut request);
        let sent = self.sender.try_send_request(request);
        let mut answer = pin!(async {
            let response = sent.await.map_err(unanswered)?;
            read(response, limit).await.map_err(Unanswered::Failed)
        });
        in_turns(poll_fn(|context| {
            if let Poll::Ready(answer) = answer.as_mut().poll(context) {
                return Poll::Ready(answer);
            }
            // A connection that ends wakes the answer, and so does everything that it reads.
            let _ = self.connection.poll_unpin(context);
            Poll::Pending
        }))
        .await
    }

    /// Whether the connection is open and has no request.
    fn is_free(&mut self) -> bool {
        // Whatever the connection waits for, the next request waits for it as well.
        let context = &mut Context::from_waker(Waker::noop());
        self.connection.poll_unpin(context).is_pending()
            && !self.connection.is_terminated()
            && self.sender.is_ready()
    }
}

/// The idle HTTP/1.1 connections.
#[derive(Default)]
struct Idle(Mutex<IdleConnections>);

#[derive(Default)]
struct IdleConnections {
    /// The connections, and since when they are idle, in the order of this time.
    connections: Vec<(Instant, Http1)>,
    /// Whether a task closes unused connections.
    is_watched: bool,
}

impl Idle {
    /// Takes the connection that was used last.
    fn take(&self) -> Option<Http1> {
        loop {
            let (_, mut connection) = self.0.lock().connections.pop()?;
            if connection.is_free() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection, if it can be used again and there are not too many.
    fn keep(self: &Arc<Self>, mut connection: Http1) {
        if !connection.is_free() {
            return;
        }
        let mut idle = self.0.lock();
        if idle.connections.len() < MAX_IDLE {
            idle.connections.push((Instant::now(), connection));
            if !std::mem::replace(&mut idle.is_watched, true) {
                tokio::spawn(close_unused(Arc::downgrade(self)));
            }
        }
    }

    /// Closes the connections that have been idle for too long. Returns the time at which the next one will have been.
    fn close_unused(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut idle = self.0.lock();
        idle.connections.retain(|(since, _)| *since + IDLE_TIMEOUT > now);
        let next = idle.connections.first().map(|(since, _)| *since + IDLE_TIMEOUT);
        idle.is_watched = next.is_some();
        next
    }
}

/// Closes unused connections as long as there are idle ones.
async fn close_unused(idle: Weak<Idle>) {
    while let Some(next) = idle.upgrade().and_then(|idle| idle.close_unused()) {
        tokio::time::sleep_until(next).await;
    }
}

async fn read(response: Response<Incoming>, limit: usize) -> Result<Answer, Cause> {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, limit).collect().await.map_err(|error| {
        match error.downcast::<LengthLimitError>() {
            Ok(_) => Cause::TooLarge(limit),
            Err(error) => Cause::Other(format!("unexpected error when reading response body: {error}")),
        }
    })?;
    Ok(Answer { head, body: body.to_bytes() })
}

fn set_host(request: &mut Request<Body>) {
    let uri = request.uri();
    let default_port = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    let host = uri.host().unwrap_or_default();
    let host = match uri.port_u16().filter(|port| *port != default_port) {
        Some(port) => HeaderValue::try_from(format!("{host}:{port}")),
        None => HeaderValue::from_str(host),
    };
    if let Ok(host) = host {
        request.headers_mut().insert(header::HOST, host);
    }
}

/// Reduces the URI to the path and the query, as HTTP/1.1 has it.
fn set_origin_form(request: &mut Request<Body>) {
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
}

fn unanswered(mut error: TrySendError<Request<Body>>) -> Unanswered {
    match error.take_message() {
        Some(request) => Unanswered::Unsent(Box::new(request)),
        None => Unanswered::Failed(Cause::of(error.into_error())),
    }
}
