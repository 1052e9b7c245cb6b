//! The kept connections to one server, which may have several addresses.
//!
//! An HTTP/1.1 connection belongs to the request that uses it: whoever polls the request, and then the body of its
//! response, polls the connection, so that a request wakes no other task. Nothing polls an idle connection. It is polled
//! once before it is used again, which shows whether the server has closed it. An HTTP/2 connection is shared and has a
//! task of its own.

mod http1;
mod http2;
mod incoming_body;
#[cfg(test)]
mod tests;

use self::{http1::Http1, http2::Http2};
use crate::{Cause, Connector, UpstreamBody};
use http::{HeaderValue, Request, Response, Uri, header, uri::Authority};
use hyper::client::conn::TrySendError;
use parking_lot::Mutex;
use std::{
    io::ErrorKind,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::time::Instant;

pub use incoming_body::IncomingBody;

/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// The maximum number of idle HTTP/1.1 connections of one address.
const MAX_IDLE: usize = 25;
/// The maximum number of headers of a response, and of bytes of its head.
const MAX_HEADERS: usize = 1000;
const MAX_HEAD_BYTES: usize = 512 << 10;

/// The kept connections. Dropping them closes those that are idle.
pub struct Connections {
    connector: Connector,
    kept: Arc<Kept>,
}

/// A request without a response.
#[derive(Debug)]
pub struct Failed {
    /// The reason.
    pub cause: Cause,
    /// Whether a kept connection was closed before the response began: the server may have closed it, because it was
    /// idle, just before the request came.
    pub is_stale: bool,
}

/// A new or a kept connection.
enum Connection {
    Http1(Http1),
    Http2(Http2),
}

/// Why a request has no response.
enum Unanswered {
    /// The kept connection was closed before the request was sent.
    Unsent(Box<Request<UpstreamBody>>),
    Failed(Cause),
}

impl Connections {
    /// No connections yet.
    pub fn new(connector: Connector) -> Connections {
        Connections { connector, kept: Arc::default() }
    }

    /// Sends a request with an absolute URI over a kept connection or a new one, and returns the response when its head
    /// has arrived. A request without the `Host` header gets the host of the URI.
    ///
    /// When the future or the response's body is dropped, the request is aborted, and its HTTP/1.1 connection closed.
    ///
    /// # Errors
    /// When there is no response.
    pub async fn send(&self, mut request: Request<UpstreamBody>) -> Result<Response<IncomingBody>, Failed> {
        let uri = request.uri().clone();
        let fresh = |cause| Failed { cause, is_stale: false };
        let Some(address) = uri.authority().cloned() else {
            return Err(fresh(Cause::Other("no Host in request URL".to_owned())));
        };
        while let Some(connection) = self.kept.take(&address) {
            match self.send_over(connection, request, &address).await {
                Ok(response) => return Ok(response),
                Err(Unanswered::Failed(cause)) => {
                    let is_stale = matches!(cause, Cause::Closed | Cause::Reset);
                    return Err(Failed { cause, is_stale });
                }
                Err(Unanswered::Unsent(unsent)) => request = *unsent,
            }
            *request.uri_mut() = uri.clone();
        }
        let connection = self.connect(&uri, &address).await.map_err(fresh)?;
        match self.send_over(connection, request, &address).await {
            Ok(response) => Ok(response),
            Err(Unanswered::Failed(cause)) => Err(fresh(cause)),
            Err(Unanswered::Unsent(_)) => Err(fresh(Cause::Closed)),
        }
    }

    async fn connect(&self, uri: &Uri, address: &Authority) -> Result<Connection, Cause> {
        let stream = self.connector.clone().connect(uri.clone()).await.map_err(|cause| match cause {
            Cause::Dial { error, .. } | Cause::Tls(error) if error.kind() == ErrorKind::ConnectionReset => {
                Cause::Reset
            }
            cause => cause,
        })?;
        Ok(match stream.is_http2() {
            true => Connection::Http2(self.kept.share(address, Http2::handshake(stream).await?)),
            false => Connection::Http1(Http1::handshake(stream).await?),
        })
    }

    async fn send_over(
        &self,
        connection: Connection,
        mut request: Request<UpstreamBody>,
        address: &Authority,
    ) -> Result<Response<IncomingBody>, Unanswered> {
        if !request.headers().contains_key(header::HOST) {
            set_host(&mut request);
        }
        match connection {
            Connection::Http1(mut connection) => {
                let response = connection.send(request).await?;
                let home = (Arc::downgrade(&self.kept), address.clone());
                Ok(response.map(|body| IncomingBody::of_http1(body, connection, home)))
            }
            Connection::Http2(connection) => {
                let (response, stream) = connection.send(request).await?;
                Ok(response.map(|body| IncomingBody::of_http2(body, stream)))
            }
        }
    }
}

/// The kept connections by address.
#[derive(Default)]
struct Kept(Mutex<KeptConnections>);

#[derive(Default)]
struct KeptConnections {
    /// The idle connections, and since when they are idle, in the order of this time.
    idle: Vec<(Instant, Authority, Http1)>,
    /// The shared connections, idle or not.
    shared: Vec<(Authority, Http2)>,
    /// Whether a task closes unused connections.
    is_watched: bool,
}

impl Kept {
    /// A connection that can carry another request: a shared one, or the idle one that was used last.
    fn take(&self, address: &Authority) -> Option<Connection> {
        loop {
            let mut kept = self.0.lock();
            kept.shared.retain(|(_, connection)| !connection.is_closed());
            let mut shared = kept.shared.iter();
            if let Some((_, connection)) = shared.find(|(at, shared)| at == address && shared.has_room()) {
                return Some(Connection::Http2(connection.clone()));
            }
            let index = kept.idle.iter().rposition(|(_, at, _)| at == address)?;
            let (_, _, mut connection) = kept.idle.remove(index);
            drop(kept);
            if connection.is_free() {
                return Some(Connection::Http1(connection));
            }
        }
    }

    /// Keeps a connection, if it can be used again and there are not too many.
    fn keep(self: &Arc<Self>, address: Authority, mut connection: Http1) {
        if !connection.is_free() {
            return;
        }
        let mut kept = self.0.lock();
        if kept.idle.iter().filter(|(_, at, _)| *at == address).count() < MAX_IDLE {
            kept.idle.push((Instant::now(), address, connection));
            self.watch(&mut kept);
        }
    }

    /// Shares a new connection. Returns the one to use: when several requests connected at the same time, the first of
    /// their connections is shared and the others are closed.
    fn share(self: &Arc<Self>, address: &Authority, connection: Http2) -> Http2 {
        let mut kept = self.0.lock();
        let mut shared = kept.shared.iter();
        let open = shared.find(|(at, shared)| at == address && shared.has_room() && !shared.is_closed());
        if let Some((_, open)) = open {
            return open.clone();
        }
        kept.shared.push((address.clone(), connection.clone()));
        self.watch(&mut kept);
        connection
    }

    fn watch(self: &Arc<Self>, kept: &mut KeptConnections) {
        if !std::mem::replace(&mut kept.is_watched, true) {
            tokio::spawn(close_unused(Arc::downgrade(self)));
        }
    }

    /// Closes the connections that have been idle for too long. Returns the time of the next check, if there are
    /// connections left.
    fn close_unused(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut kept = self.0.lock();
        kept.idle.retain(|(since, ..)| *since + IDLE_TIMEOUT > now);
        kept.shared
            .retain(|(_, connection)| connection.idle_since().is_none_or(|at| at + IDLE_TIMEOUT > now));
        let idle = kept.idle.iter().map(|(since, ..)| *since);
        let shared = kept.shared.iter().map(|(_, connection)| connection.idle_since().unwrap_or(now));
        let next = idle.chain(shared).min().map(|since| since + IDLE_TIMEOUT);
        kept.is_watched = next.is_some();
        next
    }
}

/// Closes unused connections as long as connections are kept.
async fn close_unused(kept: Weak<Kept>) {
    while let Some(next) = kept.upgrade().and_then(|kept| kept.close_unused()) {
        tokio::time::sleep_until(next).await;
    }
}

fn set_host(request: &mut Request<UpstreamBody>) {
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

fn unanswered(mut error: TrySendError<Request<UpstreamBody>>) -> Unanswered {
    match error.take_message() {
        Some(request) => Unanswered::Unsent(Box::new(request)),
        None => Unanswered::Failed(Cause::of(error.into_error())),
    }
}
