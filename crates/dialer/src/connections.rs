//! The kept connections to one server, which may have several addresses.
//!
//! An HTTP/1.1 connection belongs to the request that uses it: the task that polls the request, and then the body of its
//! response, polls the connection, so that a request wakes no other task. Nothing polls an idle connection. It is polled
//! once before it is used again, which shows whether the server has closed it. An HTTP/2 connection is shared and has a
//! task of its own.

#[cfg(test)]
mod http2_tests;
#[cfg(test)]
mod tests;

use crate::{
    Cause, Connector, IncomingBody, UpstreamBody,
    http1::Http1,
    http2::Http2,
    kept::{Connection, Kept},
    unanswered::Unanswered,
};
use http::{HeaderValue, Request, Response, Uri, header, uri::Authority};
use std::{io::ErrorKind, sync::Arc, time::Duration};
use tracing::{Instrument, Span, field::Empty};

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

impl Connections {
    /// No connections yet.
    pub fn new(connector: Connector) -> Connections {
        Connections { connector, kept: Arc::default() }
    }

    /// Sets the time limit for each of the two steps of a connection, TCP and TLS.
    pub(crate) fn set_connect_timeout(&mut self, timeout: Duration) {
        self.connector.timeout = Some(timeout);
    }

    /// Sends a request with an absolute URI over a kept connection or a new one, and returns the response when its head
    /// has arrived. The URI's host is sent where there is no `Host` header.
    ///
    /// When the future or the response's body is dropped, the request is aborted, and its HTTP/1.1 connection closed.
    ///
    /// # Errors
    /// When there is no response.
    pub async fn send(&self, request: Request<UpstreamBody>) -> Result<Response<IncomingBody>, Failed> {
        let span = span(&request);
        match span.is_disabled() {
            true => self.send_kept(request).await,
            // Few requests are traced: the future of the others does not hold this one.
            false => Box::pin(self.send_traced(request, span)).await,
        }
    }

    async fn send_traced(
        &self,
        mut request: Request<UpstreamBody>,
        span: Span,
    ) -> Result<Response<IncomingBody>, Failed> {
        let sent = async {
            pintle_telemetry::inject(request.headers_mut());
            self.send_kept(request).await
        };
        let sent = sent.instrument(span.clone()).await;
        match &sent {
            Ok(response) => span.record("http.response.status_code", response.status().as_u16()),
            Err(failed) => span.record("otel.error", failed.cause.to_string()),
        };
        sent
    }

    async fn send_kept(&self, mut request: Request<UpstreamBody>) -> Result<Response<IncomingBody>, Failed> {
        let uri = request.uri().clone();
        let Some(address) = uri.authority().cloned() else {
            let cause = Cause::Other("no Host in request URL".to_owned());
            return Err(Failed { cause, is_stale: false });
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
        // Few requests open a connection, and the future of a handshake is large.
        Box::pin(self.send_over_new(&uri, &address, request)).await
    }

    async fn send_over_new(
        &self,
        uri: &Uri,
        address: &Authority,
        request: Request<UpstreamBody>,
    ) -> Result<Response<IncomingBody>, Failed> {
        let fresh = |cause| Failed { cause, is_stale: false };
        let connection = self.connect(uri, address).await.map_err(fresh)?;
        match self.send_over(connection, request, address).await {
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
            true => {
                let connection = Http2::handshake(stream).await?;
                Connection::Http2(self.kept.share(address, connection).ok_or(Cause::Closed)?)
            }
            false => Connection::Http1(Http1::handshake(stream).await?),
        })
    }

    async fn send_over(
        &self,
        connection: Connection,
        mut request: Request<UpstreamBody>,
        address: &Authority,
    ) -> Result<Response<IncomingBody>, Unanswered> {
        match connection {
            Connection::Http1(mut connection) => {
                if !request.headers().contains_key(header::HOST) {
                    set_host(&mut request);
                }
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

fn span(request: &Request<UpstreamBody>) -> Span {
    let uri = request.uri();
    tracing::info_span!(
        target: pintle_telemetry::TARGET,
        "HTTP",
        otel.name = format_args!("HTTP {}", request.method()),
        otel.kind = "client",
        otel.error = Empty,
        "http.request.method" = request.method().as_str(),
        "server.address" = uri.host().unwrap_or_default(),
        "server.port" = uri.port_u16(),
        "url.path" = uri.path(),
        "http.response.status_code" = Empty,
    )
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
