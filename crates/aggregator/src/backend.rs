//! The server behind an API service.

use crate::ServiceDirectory;
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, Request};
use pintle_dialer::{
    Cause, Client, ClientCertificate, ConfigError, Dialer, ServiceResolver, TlsSettings, empty_body,
};
use pintle_machinery::{Value, ValueExt};
use std::{sync::Arc, time::Duration};

/// The part of the specification that connections depend on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct BackendSpec {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(crate) ca_bundle: Vec<u8>,
    pub(crate) insecure: bool,
}

impl BackendSpec {
    /// The specification of an API service; `None` when it has no service.
    pub(crate) fn of(object: &Value) -> Option<BackendSpec> {
        let service = object.at("spec.service")?;
        let ca_bundle = object.str_at("spec.caBundle");
        Some(BackendSpec {
            namespace: service.str_at("namespace").to_owned(),
            name: service.str_at("name").to_owned(),
            port: service.i64_at("port").and_then(|port| u16::try_from(port).ok()).unwrap_or(HTTPS),
            // Without a bundle the system's authorities are trusted: an unreadable one must not become none.
            ca_bundle: STANDARD.decode(ca_bundle).unwrap_or_else(|_| ca_bundle.as_bytes().to_vec()),
            insecure: object.bool_at("spec.insecureSkipTLSVerify"),
        })
    }
}

const HTTPS: u16 = 443;

/// The server behind an API service, and the connections to it. They are kept for later requests while the
/// specification and the client certificate stay the same.
#[derive(Debug)]
pub(crate) struct Backend {
    spec: BackendSpec,
    directory: Arc<ServiceDirectory>,
    client: Result<Client, ConfigError>,
}

impl Backend {
    pub(crate) fn new(
        spec: BackendSpec,
        directory: Arc<ServiceDirectory>,
        certificate: &ClientCertificate,
        dialer: &Dialer,
    ) -> Backend {
        let certificate = certificate.current();
        let settings = TlsSettings {
            ca: &spec.ca_bundle,
            insecure: spec.insecure,
            client_certificate: certificate.as_ref().map(|pair| (pair.0.as_slice(), pair.1.as_slice())),
            both_protocols: true,
        };
        let client =
            Client::of_api_service(format!("{}.{}.svc", spec.name, spec.namespace), &settings, dialer);
        Backend { spec, directory, client }
    }

    /// The properties of the API service that determine the connections.
    pub(crate) fn spec(&self) -> &BackendSpec {
        &self.spec
    }

    /// The client.
    ///
    /// # Errors
    /// When the CA bundle or the client certificate is unusable.
    pub(crate) fn client(&self) -> Result<&Client, &ConfigError> {
        self.client.as_ref()
    }

    /// The present address `host:port` of the service.
    ///
    /// # Errors
    /// The reason why the service cannot be resolved.
    pub(crate) async fn locate(&self) -> Result<String, String> {
        self.directory.resolve(&self.spec.namespace, &self.spec.name, self.spec.port).await
    }

    /// Fetches a document for the aggregator itself. The whole document must arrive within `timeout`, and have no more
    /// than `limit` bytes. Redirects are not followed.
    ///
    /// # Errors
    /// When there is no document, with the text of Go's client.
    pub(crate) async fn fetch(
        &self,
        url: &str,
        headers: HeaderMap,
        timeout: Duration,
        limit: usize,
    ) -> Result<Fetched, String> {
        let client = self.client().map_err(|error| format!("Get \"{url}\": {error}"))?;
        fetch(client, url, headers, timeout, limit).await
    }
}

/// A document of another server.
#[derive(Debug)]
pub struct Fetched {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

/// Fetches a document. All of it must arrive within `timeout`, and have no more than `limit` bytes. Redirects are not
/// followed.
///
/// # Errors
/// When there is no document, with the text of Go's client.
pub async fn fetch(
    client: &Client,
    url: &str,
    headers: HeaderMap,
    timeout: Duration,
    limit: usize,
) -> Result<Fetched, String> {
    let failed = |cause: &dyn std::fmt::Display| format!("Get \"{url}\": {cause}");
    match tokio::time::timeout(timeout, ask(client, url, headers, limit)).await {
        Ok(fetched) => fetched.map_err(|cause| failed(&cause)),
        Err(_) => Err(failed(&"context deadline exceeded (Client.Timeout exceeded while awaiting headers)")),
    }
}

async fn ask(client: &Client, url: &str, headers: HeaderMap, limit: usize) -> Result<Fetched, Cause> {
    let mut request = Request::new(empty_body());
    *request.uri_mut() =
        url.parse().map_err(|error: http::uri::InvalidUri| Cause::Other(error.to_string()))?;
    *request.headers_mut() = headers;
    let (head, body) = client.send(request).await?.into_parts();
    let body = body.whole(limit).await?;
    Ok(Fetched { status: head.status.as_u16(), headers: head.headers, body })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Routing;
    use pintle_machinery::json;

    #[test]
    fn an_unreadable_bundle_trusts_nobody() {
        let object = json!({"spec": {"caBundle": "no base64", "service": {"namespace": "n", "name": "s"}}});
        let spec = BackendSpec::of(&object).unwrap();
        let directory = Arc::new(ServiceDirectory::new(Routing::ClusterIp));
        let backend = Backend::new(spec, directory, &ClientCertificate::default(), &Dialer::default());
        let error = backend.client().unwrap_err().to_string();
        assert_eq!(error, "unable to load root certificates: unable to parse bytes as PEM block");
    }
}
