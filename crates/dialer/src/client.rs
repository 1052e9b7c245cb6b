//! A client of one server, which may have several addresses.

use crate::{Cause, ConfigError, Connector, Destination, Stream, TlsSettings};
use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Empty, combinators::UnsyncBoxBody};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy,
    rt::{TokioExecutor, TokioTimer},
};
use rustls::pki_types::ServerName;
use std::{error::Error, fmt, time::Duration};

/// The body of a request to another server.
pub type UpstreamBody = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// A client of the server of one name. The URL of a request has the address; the certificate must have the name. Idle
/// connections are kept for later requests, until the client is dropped.
pub struct Client {
    pool: legacy::Client<Connector, UpstreamBody>,
    /// Opens connections of HTTP/1.1, which can be upgraded.
    upgradable: Connector,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("name", &self.upgradable.server_name).finish_non_exhaustive()
    }
}

/// The time for which an idle connection is kept, and the number of idle connections per address.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
const MAX_IDLE: usize = 25;

impl Client {
    /// A client of the server of this name; it does not connect yet.
    ///
    /// # Errors
    /// When the name is none, or the certificates or the key are unusable.
    pub fn new(server_name: String, settings: &TlsSettings<'_>) -> Result<Client, ConfigError> {
        let server_name =
            ServerName::try_from(server_name).map_err(|error| ConfigError::Url(error.to_string()))?;
        let connector = |both_protocols| {
            let tls = TlsSettings { both_protocols, ..*settings }.connector()?;
            Ok(Connector { destination: Destination::Url, server_name: server_name.clone(), tls: Some(tls) })
        };
        let pool = legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE)
            .pool_timer(TokioTimer::new())
            .build(connector(settings.both_protocols)?);
        Ok(Client { pool, upgradable: connector(false)? })
    }

    /// Sends a request, and returns the response when its head has arrived.
    ///
    /// # Errors
    /// When there is no response.
    pub async fn send(&self, request: Request<UpstreamBody>) -> Result<Response<Incoming>, Cause> {
        self.pool.request(request).await.map_err(Cause::of)
    }

    /// Opens a connection of its own for HTTP/1.1, which can be upgraded.
    ///
    /// # Errors
    /// When there is no connection.
    pub async fn connect(&self, url: Uri) -> Result<Stream, Cause> {
        self.upgradable.clone().connect(url).await
    }
}

/// No body.
pub fn empty_body() -> UpstreamBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}
