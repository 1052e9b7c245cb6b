//! The server's side of the opening handshake.

use base64::prelude::{BASE64_STANDARD, Engine};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use ring::digest;

/// Makes the answer to a key ([RFC 6455, section 1.3](https://www.rfc-editor.org/rfc/rfc6455#section-1.3)).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A valid request to switch to WebSocket.
#[derive(Clone, Debug)]
pub struct Handshake {
    accept: HeaderValue,
    protocols: Vec<String>,
}

/// The reason why a request cannot switch to WebSocket. The texts are those that servers of Kubernetes answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The method is not GET.
    #[error("bad method")]
    Method,
    /// The headers ask for no upgrade, or for one to another protocol.
    #[error("not websocket protocol")]
    NotWebSocket,
    /// There is no key.
    #[error("mismatch challenge/response")]
    Key,
    /// The version is not 13.
    #[error("missing or bad WebSocket Version")]
    Version,
}

impl HandshakeError {
    /// The status of the refusal.
    pub fn status(self) -> StatusCode {
        match self {
            HandshakeError::Method => StatusCode::METHOD_NOT_ALLOWED,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

impl Handshake {
    /// Reads the handshake of a request.
    ///
    /// # Errors
    /// When the request cannot switch to WebSocket.
    pub fn read(method: &Method, headers: &HeaderMap) -> Result<Handshake, HandshakeError> {
        let value =
            |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
        if method != Method::GET {
            return Err(HandshakeError::Method);
        }
        if !value(header::UPGRADE).eq_ignore_ascii_case("websocket")
            || !mentions_upgrade(value(header::CONNECTION))
        {
            return Err(HandshakeError::NotWebSocket);
        }
        let key = headers.get(header::SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes).unwrap_or_default();
        if key.is_empty() {
            return Err(HandshakeError::Key);
        }
        if value(header::SEC_WEBSOCKET_VERSION) != "13" {
            return Err(HandshakeError::Version);
        }
        let accept = HeaderValue::try_from(accept(key)).map_err(|_| HandshakeError::Key)?;
        let protocols = value(header::SEC_WEBSOCKET_PROTOCOL).trim();
        let protocols = match protocols {
            "" => Vec::new(),
            list => list.split(',').map(|protocol| protocol.trim().to_owned()).collect(),
        };
        Ok(Handshake { accept, protocols })
    }

    /// The subprotocols that the client offers, the preferred one first.
    pub fn protocols(&self) -> &[String] {
        &self.protocols
    }

    /// The response that switches protocols, with the chosen subprotocol.
    pub fn response(&self, protocol: Option<HeaderValue>) -> Response<()> {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, self.accept.clone());
        if let Some(protocol) = protocol {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response
    }
}

/// Whether the headers ask for an upgrade to WebSocket. The handshake may still be invalid.
pub fn is_websocket_request(headers: &HeaderMap) -> bool {
    let is_websocket =
        headers.get(header::UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let mut connections = headers.get_all(header::CONNECTION).iter();
    is_websocket && connections.any(|value| value.to_str().is_ok_and(mentions_upgrade))
}

fn mentions_upgrade(connection: &str) -> bool {
    connection.to_ascii_lowercase().contains("upgrade")
}

/// The answer to a key.
fn accept(key: &[u8]) -> String {
    let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    context.update(key);
    context.update(GUID);
    BASE64_STANDARD.encode(context.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn the_key_of_the_standard_is_answered() {
        assert_eq!(accept(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn requests_that_cannot_switch_are_refused() {
        let good = [
            ("upgrade", "WebSocket"),
            ("connection", "keep-alive, Upgrade"),
            ("sec-websocket-key", "a"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-protocol", " v5 ,v4"),
        ];
        let handshake = Handshake::read(&Method::GET, &headers(&good)).unwrap();
        assert_eq!(handshake.protocols(), ["v5", "v4"]);
        assert!(is_websocket_request(&headers(&good)));
        let cases = [
            (0, HandshakeError::NotWebSocket),
            (1, HandshakeError::NotWebSocket),
            (2, HandshakeError::Key),
            (3, HandshakeError::Version),
        ];
        for (missing, error) in cases {
            let mut pairs = good.to_vec();
            pairs.remove(missing);
            assert_eq!(Handshake::read(&Method::GET, &headers(&pairs)).unwrap_err(), error);
        }
        let error = Handshake::read(&Method::POST, &headers(&good)).unwrap_err();
        assert_eq!((error.status().as_u16(), error.to_string()), (405, "bad method".to_owned()));
    }
}
