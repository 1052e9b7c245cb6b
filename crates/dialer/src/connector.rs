//! Connections to other servers.

use crate::{Cause, Dialer, Link, Peers, ServiceResolver};
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use pintle_tls::{ReadAhead, WholeReads};
use rustls::pki_types::ServerName;
use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// The most time for a TLS handshake, whatever the caller's limit: that of the transports of Go's clients.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The destination of connections.
#[derive(Clone)]
pub enum Destination {
    /// The host and port of the URL.
    Url,
    /// The present address of the service.
    Service {
        /// Resolves the service for each connection.
        resolver: Arc<dyn ServiceResolver>,
        /// The service's namespace.
        namespace: String,
        /// The service's name.
        name: String,
        /// The port of the service.
        port: u16,
    },
}

/// Opens connections, with TLS if configured.
#[derive(Clone)]
pub struct Connector {
    /// The destination of connections.
    pub destination: Destination,
    /// The name that the server's certificate must be valid for; `None` for the host of the URL.
    pub server_name: Option<ServerName<'static>>,
    /// TLS; `None` for plain HTTP.
    pub tls: Option<TlsConnector>,
    /// The time limit for each of the two steps, TCP and TLS; `None` for that of the caller alone. A handshake has ten
    /// seconds at most.
    pub timeout: Option<Duration>,
    /// Opens the connections in the network of the destination.
    pub dialer: Dialer,
    /// The metrics that count refused certificates; `None` to count none.
    pub peers: Option<Peers>,
}

impl Connector {
    /// Opens a connection to the destination.
    ///
    /// # Errors
    /// When there is no connection.
    pub async fn connect(self, uri: Uri) -> Result<Stream, Cause> {
        let address = match &self.destination {
            Destination::Url => {
                let host = uri.host().unwrap_or_default();
                format!("{host}:{}", uri.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 }))
            }
            Destination::Service { resolver, namespace, name, port } => {
                resolver.resolve(namespace, name, *port).await.map_err(Cause::Resolve)?
            }
        };
        let late = || format!("dial tcp {address}: i/o timeout");
        let link = within(self.timeout, self.dialer.dial(&address), late).await?;
        let Some(tls) = self.tls else { return Ok(Stream::Plain(TokioIo::new(link))) };
        let server_name = match self.server_name {
            Some(server_name) => server_name,
            None => name_of(uri.host().unwrap_or_default())?,
        };
        let handshake = async {
            tls.connect(server_name, ReadAhead::new(link)).await.map_err(|error| {
                if let Some(peers) = self.peers {
                    peers.refused(&error);
                }
                Cause::Tls(error)
            })
        };
        let limit = self.timeout.map_or(HANDSHAKE_TIMEOUT, |timeout| timeout.min(HANDSHAKE_TIMEOUT));
        let tls = within(Some(limit), handshake, || "net/http: TLS handshake timeout".to_owned()).await?;
        Ok(Stream::Tls(TokioIo::new(Box::new(WholeReads::new(tls)))))
    }
}

/// The result of a step, if it comes in time.
async fn within<T>(
    limit: Option<Duration>,
    step: impl Future<Output = Result<T, Cause>>,
    late: impl FnOnce() -> String,
) -> Result<T, Cause> {
    match limit {
        None => step.await,
        Some(limit) => tokio::time::timeout(limit, step).await.unwrap_or_else(|_| Err(Cause::Other(late()))),
    }
}

/// The name of a URL's host.
fn name_of(host: &str) -> Result<ServerName<'static>, Cause> {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(host.to_owned()).map_err(|error| Cause::Other(error.to_string()))
}

/// A connection, which knows the negotiated protocol.
pub enum Stream {
    /// With TLS.
    Tls(TokioIo<Box<WholeReads<TlsStream<ReadAhead<Link>>>>>),
    /// Without TLS.
    Plain(TokioIo<Link>),
}

/// Calls a function of the connection, with or without TLS.
macro_rules! either {
    ($stream:expr, $inner:ident => $call:expr) => {
        match &mut *$stream {
            Stream::Tls($inner) => {
                let $inner = Pin::new($inner);
                $call
            }
            Stream::Plain($inner) => {
                let $inner = Pin::new($inner);
                $call
            }
        }
    };
}

impl Stream {
    /// Whether HTTP/2 was negotiated.
    pub fn is_http2(&self) -> bool {
        matches!(self, Stream::Tls(stream) if stream.inner().get_ref().get_ref().1.alpn_protocol() == Some(b"h2"))
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match either!(self, stream => stream.poll_read(context, buffer)) {
            // Many servers close connections without a farewell. Go's clients take that for a proper end, too: the
            // protocol inside knows whether the message is complete.
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
            read => read,
        }
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_shutdown(context))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Tls(stream) => stream.is_write_vectored(),
            Stream::Plain(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write_vectored(context, slices))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TlsSettings;
    use tokio::{net::TcpListener, time::Instant};

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_shakes_hands_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri: Uri = format!("https://{}/x", listener.local_addr().unwrap()).parse().unwrap();
        let settings =
            TlsSettings { ca: &[], insecure: true, client_certificate: None, both_protocols: false };
        let minute = Duration::from_secs(60);
        for (timeout, expected) in [(None, 10), (Some(minute), 10), (Some(Duration::from_secs(5)), 5)] {
            let connector = Connector {
                destination: Destination::Url,
                server_name: None,
                tls: Some(settings.connector().unwrap()),
                timeout,
                dialer: Dialer::default(),
                peers: None,
            };
            let begun = Instant::now();
            let connected = tokio::time::timeout(minute, connector.connect(uri.clone())).await.unwrap();
            assert_eq!(connected.err().unwrap().to_string(), "net/http: TLS handshake timeout");
            assert_eq!(begun.elapsed().as_secs(), expected, "{timeout:?}");
        }
    }
}
