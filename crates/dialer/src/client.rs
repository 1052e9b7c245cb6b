//! A client of one server, which may have several addresses.

use crate::{
    Cause, ConfigError, Connections, Connector, Destination, Dialer, IncomingBody, Peers, Stream,
    TlsSettings, UpstreamBody, empty_body, tls_settings::without_http2,
};
use http::{Request, Response, Uri, request};
use rustls::pki_types::ServerName;
use std::{fmt, num::NonZeroU64, time::Duration};

/// A client of the server of one name. The URL of a request has the address; the certificate must have the name. Idle
/// connections are kept for later requests, until the client is dropped.
pub struct Client {
    connections: Connections,
    /// Opens connections of HTTP/1.1, which can be upgraded.
    upgradable: Connector,
    /// The limit of the throughput of upgraded connections.
    upgraded_bytes_per_second: Option<NonZeroU64>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("name", &self.upgradable.server_name).finish_non_exhaustive()
    }
}

/// How often a request is sent again when kept connections turn out to be closed.
const MAX_RETRIES: usize = 3;

impl Client {
    /// A client of the server of this name, in the network of the dialer; it does not connect yet.
    ///
    /// # Errors
    /// When the name is none, or the certificates or the key are unusable.
    pub fn new(
        server_name: String,
        settings: &TlsSettings<'_>,
        dialer: &Dialer,
    ) -> Result<Client, ConfigError> {
        let server_name =
            ServerName::try_from(server_name).map_err(|error| ConfigError::Url(error.to_string()))?;
        Client::with(Some(server_name), Some(settings), None, dialer, None)
    }

    /// As [`Client::new`], for the server of an API service.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn of_api_service(
        server_name: String,
        settings: &TlsSettings<'_>,
        dialer: &Dialer,
    ) -> Result<Client, ConfigError> {
        let server_name =
            ServerName::try_from(server_name).map_err(|error| ConfigError::Url(error.to_string()))?;
        Client::with(Some(server_name), Some(settings), None, dialer, Some(Peers::ApiServices))
    }

    /// A client of any servers in the network of the dialer: the certificate of each must be valid for the host of its URL. Without settings it uses
    /// no TLS. A connection must be made within `timeout`.
    ///
    /// # Errors
    /// When the certificates or the key are unusable.
    pub fn of_hosts(
        settings: Option<&TlsSettings<'_>>,
        timeout: Duration,
        dialer: &Dialer,
    ) -> Result<Client, ConfigError> {
        Client::with(None, settings, Some(timeout), dialer, None)
    }

    fn with(
        server_name: Option<ServerName<'static>>,
        settings: Option<&TlsSettings<'_>>,
        timeout: Option<Duration>,
        dialer: &Dialer,
        peers: Option<Peers>,
    ) -> Result<Client, ConfigError> {
        let tls = settings.map(TlsSettings::connector).transpose()?;
        let upgradable = tls.as_ref().map(without_http2);
        let connector = |tls| Connector {
            destination: Destination::Url,
            server_name: server_name.clone(),
            tls,
            timeout,
            dialer: dialer.clone(),
            peers,
        };
        Ok(Client {
            connections: Connections::new(connector(tls)),
            upgradable: connector(upgradable),
            upgraded_bytes_per_second: None,
        })
    }

    /// The same client with a time limit for each of the two steps of a connection, TCP and TLS.
    #[must_use]
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Client {
        self.connections.set_connect_timeout(timeout);
        self.upgradable.timeout = Some(timeout);
        self
    }

    /// The same client with a limit of the bytes per second, in each direction, of connections that are upgraded. Their
    /// users obey it: the client only keeps it.
    #[must_use]
    pub fn with_upgraded_bytes_per_second(mut self, limit: Option<NonZeroU64>) -> Client {
        self.upgraded_bytes_per_second = limit;
        self
    }

    /// The limit of the throughput of upgraded connections.
    pub fn upgraded_bytes_per_second(&self) -> Option<NonZeroU64> {
        self.upgraded_bytes_per_second
    }

    /// Sends a request, and returns the response when its head has arrived.
    ///
    /// # Errors
    /// When there is no response.
    pub async fn send(&self, request: Request<UpstreamBody>) -> Result<Response<IncomingBody>, Cause> {
        self.connections.send(request).await.map_err(|failed| failed.cause)
    }

    /// Sends a request without a body that may be repeated. It is sent again when a kept connection ends before the
    /// response begins: the server may have closed it just before the request came.
    ///
    /// # Errors
    /// When there is no response.
    pub async fn send_replayable(&self, head: request::Parts) -> Result<Response<IncomingBody>, Cause> {
        let mut retries = 0;
        loop {
            let request = Request::from_parts(head.clone(), empty_body());
            match self.connections.send(request).await {
                Err(failed) if failed.is_stale && retries < MAX_RETRIES => retries += 1,
                sent => return sent.map_err(|failed| failed.cause),
            }
        }
    }

    /// Opens a connection of its own for HTTP/1.1, which can be upgraded.
    ///
    /// # Errors
    /// When there is no connection.
    pub async fn connect(&self, url: Uri) -> Result<Stream, Cause> {
        self.upgradable.clone().connect(url).await
    }
}
