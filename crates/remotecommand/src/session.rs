//! The session with a node.

use crate::protocol::Protocol;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use pintle_dialer::{Client, empty_body};
use pintle_go_forms::quote;
use pintle_proxy::{Switch, switch};
use pintle_spdy::{Headers, Session, Stream};
use serde::Deserialize;
use std::time::Duration;
use tokio::time::timeout;

/// How often a session is pinged: a middlebox may forget idle connections.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// How long a node may take to accept a stream.
const STREAM_TIMEOUT: Duration = Duration::from_secs(30);
/// The most bytes that are read of a node's refusal.
const MAX_REFUSAL_BYTES: usize = 50_000;

/// The header of the versions of the protocol.
pub(crate) const PROTOCOL_VERSION: &str = "x-stream-protocol-version";
/// The protocol that the connection is upgraded to.
pub(crate) const SPDY: &str = "SPDY/3.1";

/// Opens a session with the node at a URL, and negotiates the protocol.
///
/// # Errors
/// The text that the client gets.
pub(crate) async fn open(client: &Client, uri: &Uri) -> Result<(Session, Protocol), String> {
    let switched = switch(client, request(uri)).await;
    let switched = switched.map_err(|error| failed(&uri.to_string(), error))?;
    let (head, connection) = match switched {
        Switch::Switched { head, connection } if is_spdy(&head.headers) => (head, connection),
        Switch::Switched { .. } => {
            return Err("unable to upgrade connection: empty server response".to_owned());
        }
        Switch::Refused(response) => return Err(refused(response).await),
    };
    let protocol = text_of(&head.headers, PROTOCOL_VERSION);
    let Some(known) = Protocol::named(protocol) else {
        return Err(format!("unable to upgrade connection: unknown protocol {}", quote(protocol)));
    };
    Ok((Session::client(connection, Some(PING_INTERVAL)), known))
}

/// Opens a stream of a type.
///
/// # Errors
/// The text that the client gets.
pub(crate) async fn stream(session: &Session, kind: &str) -> Result<Stream, String> {
    let headers: Headers = [("streamtype", kind)].into_iter().collect();
    match timeout(STREAM_TIMEOUT, session.open(&headers)).await {
        Ok(opened) => opened.map_err(|error| error.to_string()),
        Err(_) => Err("Timeout occurred".to_owned()),
    }
}

fn request(uri: &Uri) -> Request<pintle_dialer::UpstreamBody> {
    let mut request = Request::new(empty_body());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri.clone();
    let headers = request.headers_mut();
    if let Some(Ok(host)) = uri.authority().map(|host| HeaderValue::from_str(host.as_str())) {
        headers.insert(header::HOST, host);
    }
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(SPDY));
    for protocol in Protocol::OFFERED {
        headers.append(PROTOCOL_VERSION, HeaderValue::from_static(protocol));
    }
    request
}

/// Whether a response upgrades to SPDY.
pub(crate) fn is_spdy(headers: &HeaderMap) -> bool {
    let has = |name: header::HeaderName, part: &str| {
        text_of(headers, name.as_str()).to_ascii_lowercase().contains(part)
    };
    has(header::CONNECTION, "upgrade") && has(header::UPGRADE, "spdy/3.1")
}

fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn failed(url: &str, error: impl std::fmt::Display) -> String {
    format!("error sending request: Post {}: {error}", quote(url))
}

/// The text of a refusal.
async fn refused(response: Response<Incoming>) -> String {
    let location = text_of(response.headers(), "location");
    if matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) && !location.is_empty() {
        return failed(location, "redirect not allowed");
    }
    let why = match read(response.into_body()).await {
        Some(body) => reason(&body),
        None => "unable to read error from server response".to_owned(),
    };
    format!("unable to upgrade connection: {why}")
}

/// The beginning of a body; `None` when it breaks off.
async fn read(mut body: Incoming) -> Option<Vec<u8>> {
    let mut read = Vec::new();
    while read.len() < MAX_REFUSAL_BYTES
        && let Some(frame) = body.frame().await
    {
        let bytes: Bytes = frame.ok()?.into_data().unwrap_or_default();
        read.extend_from_slice(&bytes);
    }
    read.truncate(MAX_REFUSAL_BYTES);
    Some(read)
}

/// The text in a body, which may be a `Status`.
fn reason(body: &[u8]) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Refusal {
        message: String,
        error: String,
    }
    if let Ok(Refusal { message, error }) = serde_json::from_slice(body) {
        let texts = [message, error];
        if let Some(text) = texts.iter().map(|text| text.trim()).find(|text| !text.is_empty()) {
            return text.to_owned();
        }
    }
    let text = String::from_utf8_lossy(body);
    match text.trim() {
        "" => "empty server response".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_a_text() {
        let check = |body: &str, expected: &str| assert_eq!(reason(body.as_bytes()), expected);
        check("", "empty server response");
        check(" why\n", "why");
        check(r#"{"message": " why ", "error": "x"}"#, "why");
        check(r#"{"error": "why"}"#, "why");
        check(r#"{"other": 1}"#, r#"{"other": 1}"#);
        check(r#"{"message": 1}"#, r#"{"message": 1}"#);
    }
}
