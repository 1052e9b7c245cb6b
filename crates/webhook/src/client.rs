//! A client of one webhook.

#[cfg(test)]
mod tests;

use crate::{ClientUser, Credentials, Kubeconfig, Response, authorization_header::AuthorizationHeader};
use crate::{call_error::CallError, packed_body::unpacked};
use bytes::Bytes;
use http::{Method, Request, Uri, header, uri::PathAndQuery};
use http_body_util::{BodyExt, Full};
use pintle_dialer::{
    Cause, ConfigError, Connections, Connector, Destination, Dialer, Network, Outbound, Peers,
    RestClientSeries, TlsSettings,
};
use pintle_go_forms::{Url, clean_path, escape_path, format_duration};
use pintle_offload::weigh;
use rustls::pki_types::ServerName;
use std::{
    fmt,
    net::IpAddr,
    time::{Duration, Instant},
};

/// The address of a webhook, and its trust anchors.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientConfig {
    /// The address of the webhook.
    pub endpoint: Endpoint,
    /// The CA certificates, in PEM; blank for the system's trust anchors.
    pub ca_bundle: Vec<u8>,
}

/// The address of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A URL with the scheme `https`.
    Url(String),
    /// A service.
    Service(ServiceReference),
}

/// A port of a service and a path. The webhook's certificate must be valid for `<name>.<namespace>.svc`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServiceReference {
    /// The service's namespace.
    pub namespace: String,
    /// The service's name.
    pub name: String,
    /// The port of the service.
    pub port: u16,
    /// The path, with or without a leading slash.
    pub path: String,
}

/// Sends requests to one webhook. Connections are kept for later requests, until the client is dropped.
pub struct WebhookClient {
    connections: Connections,
    /// The URL without a query.
    url: String,
    user_agent: &'static str,
    authorization: AuthorizationHeader,
    series: RestClientSeries,
}

impl fmt::Debug for WebhookClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookClient").field("url", &self.url).finish_non_exhaustive()
    }
}

/// The size limit of a response: this number of bytes, plus a multiple of the request's size, which many responses
/// repeat.
const ANSWER_SIZE: usize = 4 << 20;
const ANSWER_FACTOR: usize = 4;

/// The number of times that a request is sent again because the server asks for it.
const MAX_RETRIES: usize = 10;

impl WebhookClient {
    /// A client of the webhook; it does not connect yet.
    ///
    /// # Errors
    /// When the scheme of the URL is not `https`, or the bundle has no certificate.
    pub fn new(config: &ClientConfig, outbound: &Outbound) -> Result<WebhookClient, ConfigError> {
        WebhookClient::of_user(config, outbound, &ClientUser::default())
    }

    /// As [`WebhookClient::new`]; the client identifies itself as this user.
    ///
    /// # Errors
    /// As [`WebhookClient::new`], and when the credentials of the user are unusable.
    pub fn of_user(
        config: &ClientConfig,
        outbound: &Outbound,
        user: &ClientUser,
    ) -> Result<WebhookClient, ConfigError> {
        let (url, destination, host, both_protocols, network) = match &config.endpoint {
            Endpoint::Url(url) => {
                let uri: Uri = url.parse().map_err(|error| ConfigError::Url(format!("{error}")))?;
                let Some(host) = uri.host().filter(|_| uri.scheme_str() == Some("https")) else {
                    return Err(ConfigError::Url("it must begin with https:// and a host".to_owned()));
                };
                let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
                let host = host.trim_matches(['[', ']']).to_owned();
                let url = format!("https://{authority}{}", path_of(url)?);
                let is_local = is_local(&host);
                (url, Destination::Url, host, is_local, Some(Network::ControlPlane))
            }
            Endpoint::Service(service) => {
                let ServiceReference { namespace, name, port, path } = service;
                // A service may have many servers, and load balancing is per connection: with HTTP/1.1 each
                // connection carries one request at a time.
                let host = format!("{name}.{namespace}.svc");
                let url = format!("https://{host}:{port}{}", request_path(path));
                // This server itself is behind this service.
                let is_own = (namespace.as_str(), name.as_str(), *port) == ("default", "kubernetes", 443);
                let network = (!is_own).then_some(Network::Cluster);
                let resolver = outbound.services.clone();
                let (namespace, name, port) = (namespace.clone(), name.clone(), *port);
                (url, Destination::Service { resolver, namespace, name, port }, host, false, network)
            }
        };
        let server_name = ServerName::try_from(host).map_err(|error| ConfigError::Url(error.to_string()))?;
        let client_certificate = user.client_certificate.as_ref();
        let settings = TlsSettings {
            ca: &config.ca_bundle,
            insecure: false,
            client_certificate: client_certificate.map(|(certificate, key)| (&**certificate, &**key)),
            both_protocols,
        };
        let dialer = network.map(|network| outbound.egress.dialer(network)).unwrap_or_default();
        let tls = Some(settings.connector()?);
        let peers = Some(Peers::Webhooks);
        let server_name = Some(server_name);
        let connector = Connector { destination, server_name, tls, timeout: None, dialer, peers };
        Ok(WebhookClient {
            connections: Connections::new(connector),
            series: series_of(&url),
            url,
            user_agent: "kube-apiserver-admission",
            authorization: AuthorizationHeader::new(&user.credentials).map_err(ConfigError::Credentials)?,
        })
    }

    /// A client of the server in a kubeconfig, in the network of the dialer; it does not connect yet. The path of the
    /// server's URL is the webhook's.
    ///
    /// # Errors
    /// When the scheme of the URL is neither `https` nor `http`, or certificates, keys or tokens are unusable.
    pub fn of_kubeconfig(config: &Kubeconfig, dialer: &Dialer) -> Result<WebhookClient, ConfigError> {
        // Without a scheme, Kubernetes' client uses TLS for a server whose authority, or whose lack of one, is configured.
        let text =
            match (config.server.contains("://"), config.ca.is_empty() && !config.insecure_skip_tls_verify) {
                (true, _) => config.server.clone(),
                (false, true) => format!("http://{}", config.server),
                (false, false) => format!("https://{}", config.server),
            };
        let uri: Uri = text.parse().map_err(|error| ConfigError::Url(format!("{error}")))?;
        let (Some(host), Some(authority)) = (uri.host(), uri.authority()) else {
            return Err(ConfigError::Url("it has no host".to_owned()));
        };
        let tls = match uri.scheme_str() {
            Some("https") => Some(config.tls_settings().connector()?),
            Some("http") => None,
            _ => return Err(ConfigError::Url("it must begin with https:// or http://".to_owned())),
        };
        let server_name =
            config.tls_server_name.as_deref().unwrap_or(host.trim_matches(['[', ']'])).to_owned();
        let server_name =
            ServerName::try_from(server_name).map_err(|error| ConfigError::Url(error.to_string()))?;
        let scheme = uri.scheme_str().unwrap_or_default();
        let url = format!("{scheme}://{authority}{}", path_of(&text)?);
        // Kubernetes leaves the name of this client to Go.
        let user_agent = if tls.is_some() { "Go-http-client/2.0" } else { "Go-http-client/1.1" };
        // Credentials are not sent in plain text.
        let credentials = if tls.is_some() { &config.credentials } else { &Credentials::None };
        let authorization = AuthorizationHeader::new(credentials).map_err(ConfigError::Credentials)?;
        let connector = Connector {
            destination: Destination::Url,
            server_name: Some(server_name),
            tls,
            timeout: None,
            dialer: dialer.clone(),
            peers: None,
        };
        Ok(WebhookClient {
            connections: Connections::new(connector),
            series: series_of(&url),
            url,
            user_agent,
            authorization,
        })
    }

    /// Posts a request; the whole response must arrive within `timeout`. A server that is overloaded or fails, and says
    /// after how many seconds to try again, gets the request again, up to ten times.
    ///
    /// # Errors
    /// When there is no response, or it is larger than four megabytes plus four times the request.
    pub async fn post(&self, question: Bytes, timeout: Duration) -> Result<Response, CallError> {
        self.post_telling(question, timeout, timeout).await
    }

    /// As [`WebhookClient::post`]; the server is told that it has the time `told`.
    ///
    /// # Errors
    /// As [`WebhookClient::post`].
    pub async fn post_telling(
        &self,
        question: Bytes,
        told: Duration,
        timeout: Duration,
    ) -> Result<Response, CallError> {
        let nanos = i64::try_from(told.as_nanos()).unwrap_or(i64::MAX);
        let url = format!("{}?timeout={}", self.url, format_duration(nanos));
        let failed = |cause| CallError::new(&url, cause);
        // The futures around this one would each be moved with it.
        let deadline = tokio::time::Instant::now() + timeout;
        let answer = Box::pin(self.ask_with_retries(&url, question, deadline)).await;
        if let Ok(response) = &answer {
            if (200..300).contains(&response.status) {
                self.series.responded(response.body.len());
            }
            // The caller decodes it next.
            weigh(response.body.len()).await;
        }
        answer.map_err(failed)
    }

    async fn ask_with_retries(
        &self,
        url: &str,
        question: Bytes,
        deadline: tokio::time::Instant,
    ) -> Result<Response, Cause> {
        let mut retries = 0..MAX_RETRIES;
        loop {
            let (started, bytes) = (Instant::now(), question.len());
            let answer = self.ask(url, question.clone(), deadline).await;
            let code = answer.as_ref().ok().map(|response| response.status);
            self.series.requested(bytes, code, started.elapsed());
            let response = answer?;
            match response.retry_after_seconds() {
                Some(seconds) if retries.next().is_some() => {
                    let wait = tokio::time::sleep(Duration::from_secs(seconds));
                    tokio::time::timeout_at(deadline, wait).await.map_err(|_| Cause::Timeout)?;
                }
                _ => return Ok(response),
            }
        }
    }

    async fn ask(
        &self,
        url: &str,
        question: Bytes,
        deadline: tokio::time::Instant,
    ) -> Result<Response, Cause> {
        let asked = question.len();
        let limit = ANSWER_SIZE + ANSWER_FACTOR * asked;
        let mut request = Request::new(Full::new(question).map_err(|never| match never {}).boxed_unsync());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri(url)?;
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, header::HeaderValue::from_static("application/json, */*"));
        headers.insert(header::ACCEPT_ENCODING, header::HeaderValue::from_static("gzip"));
        headers.insert(header::USER_AGENT, header::HeaderValue::from_static(self.user_agent));
        let sent = async {
            if let Some(value) = self.authorization.value().await {
                request.headers_mut().insert(header::AUTHORIZATION, value);
            }
            self.connections.send(request).await.map_err(|failed| failed.cause)
        };
        let response = tokio::time::timeout_at(deadline, sent).await.unwrap_or(Err(Cause::Timeout))?;
        let (head, body) = response.into_parts();
        let body = tokio::time::timeout_at(deadline, body.whole(limit)).await;
        let body = body.unwrap_or(Err(Cause::SlowBody)).map_err(|cause| match cause {
            Cause::Other(_) | Cause::Closed => Cause::BrokenBody,
            cause => cause,
        })?;
        let body = unpacked(&head.headers, body, limit).await?;
        let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        let retry_after = head.headers.get(header::RETRY_AFTER);
        let retry_after = retry_after.map(|value| value.to_str().unwrap_or_default().to_owned());
        Ok(Response { status: head.status.as_u16(), content_type, retry_after, body, question: asked })
    }
}

/// The path of requests to a URL.
fn path_of(url: &str) -> Result<String, ConfigError> {
    let url = Url::parse(url).map_err(ConfigError::Url)?;
    Ok(request_path(&String::from_utf8_lossy(url.path())))
}

/// The path of requests, as Kubernetes' clients join it: the shortest that is the same, without a slash at its end. Servers
/// redirect paths with two slashes.
fn request_path(path: &str) -> String {
    escape_path(clean_path(&format!("/{path}")).as_bytes())
}

/// The series of the requests to the host of a URL.
fn series_of(url: &str) -> RestClientSeries {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    RestClientSeries::new("POST", host.split('/').next().unwrap_or(host).to_owned())
}

fn uri(url: &str) -> Result<Uri, Cause> {
    let uri: Uri = url.parse().map_err(|error| Cause::Other(format!("{error}")))?;
    let mut parts = uri.into_parts();
    if parts.path_and_query.is_none() {
        parts.path_and_query = Some(PathAndQuery::from_static("/"));
    }
    Uri::from_parts(parts).map_err(|error| Cause::Other(error.to_string()))
}

fn is_local(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
