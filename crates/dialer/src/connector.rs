//! Connections to other servers.

use crate::{Cause, ServiceResolver};
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::{TlsConnector, client::TlsStream};

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
    /// The name that the server's certificate must be valid for.
    pub server_name: ServerName<'static>,
    /// TLS; `None` for plain HTTP.
    pub tls: Option<TlsConnector>,
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
        let tcp = dial(&address).await?;
        // A request is written at once and waits for its response: delaying small writes gains nothing.
        let _ = tcp.set_nodelay(true);
        let Some(tls) = self.tls else { return Ok(Stream::Plain(TokioIo::new(tcp))) };
        let tls = tls.connect(self.server_name, tcp).await.map_err(Cause::Tls)?;
        Ok(Stream::Tls(TokioIo::new(Box::new(tls))))
    }
}

async fn dial(address: &str) -> Result<TcpStream, Cause> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let addresses = lookup_host(address).await.map_err(|_| Cause::Lookup(host.to_owned()))?;
    let mut failed = Cause::Lookup(host.to_owned());
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = Cause::Dial { address: address.to_string(), error },
        }
    }
    Err(failed)
}

/// A connection, which knows the negotiated protocol.
pub enum Stream {
    /// With TLS.
    Tls(TokioIo<Box<TlsStream<TcpStream>>>),
    /// Without TLS.
    Plain(TokioIo<TcpStream>),
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
        matches!(self, Stream::Tls(stream) if stream.inner().get_ref().1.alpn_protocol() == Some(b"h2"))
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
