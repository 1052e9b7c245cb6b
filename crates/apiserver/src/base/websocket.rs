//! WebSocket for handlers that stream to the client only, such as watches.
//!
//! A handler answers with a body of frames. The server sends them on the upgraded connection, and reads the client's
//! frames there.

use crate::base::{body::Body, response::Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use pintle_go_forms::Url;
use pintle_websocket::{Handshake, HandshakeError};

/// Marks a response of frames, which the server sends on the upgraded connection.
#[derive(Clone, Copy)]
pub(crate) struct WebSocketFrames;

/// The response that accepts a handshake, for a body of frames, by the rules of Go's `golang.org/x/net/websocket`: the
/// origin must be a URL, since only browsers need this transport, and the only subprotocol is accepted whatever it is.
///
/// # Errors
/// The response that refuses the handshake, without a body.
pub(crate) fn accept(headers: &HeaderMap, frames: Body) -> Result<Response, Box<Response>> {
    let handshake = handshake(headers)?;
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok()).unwrap_or_default();
    if origin.is_empty() || Url::parse_request_uri(origin).is_err() {
        return Err(refusal(StatusCode::FORBIDDEN));
    }
    let protocol = match handshake.protocols() {
        [] => None,
        [protocol] => Some(HeaderValue::from_str(protocol).map_err(|_| refusal(StatusCode::BAD_REQUEST))?),
        _ => return Err(refusal(StatusCode::BAD_REQUEST)),
    };
    let mut response = handshake.response(protocol).map(|()| frames);
    response.extensions_mut().insert(WebSocketFrames);
    Ok(response)
}

/// Reads the handshake of a GET.
///
/// # Errors
/// The response that refuses the handshake, without a body.
pub(crate) fn handshake(headers: &HeaderMap) -> Result<Handshake, Box<Response>> {
    Handshake::read(&Method::GET, headers).map_err(|error| {
        let mut response = refusal(error.status());
        if error == HandshakeError::Version {
            response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        }
        response
    })
}

/// A response that refuses a handshake; the connection ends with it.
pub(crate) fn refusal(code: StatusCode) -> Box<Response> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    Box::new(response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    #[test]
    fn a_handshake_needs_key_version_origin_and_at_most_one_protocol() {
        let upgrade = [(header::UPGRADE, "websocket"), (header::CONNECTION, "Upgrade")];
        let check = |given: &[(HeaderName, &str)], expected: u16, protocol: Option<&str>| {
            let given = [&upgrade[..], given].concat();
            let headers =
                given.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()));
            let response = accept(&headers.collect(), Body::empty()).unwrap_or_else(|refusal| *refusal);
            assert_eq!(response.status().as_u16(), expected, "{given:?}");
            let chosen = response.headers().get(header::SEC_WEBSOCKET_PROTOCOL);
            assert_eq!(chosen.map(|value| value.to_str().unwrap()), protocol);
        };
        let key = (header::SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==");
        let version = (header::SEC_WEBSOCKET_VERSION, "13");
        let origin = (header::ORIGIN, "https://console.example.com");
        let protocol = |given| (header::SEC_WEBSOCKET_PROTOCOL, given);
        let all = [key.clone(), version.clone(), origin.clone()];
        let with = |given| [&all[..], &[protocol(given)]].concat();
        check(&all, 101, None);
        check(&with(""), 101, None);
        check(&with(" any "), 101, Some("any"));
        check(&with("one,"), 400, None);
        check(&with("one, two"), 400, None);
        check(&[version.clone(), origin.clone()], 400, None);
        check(&[key.clone(), origin.clone()], 400, None);
        check(&[key.clone(), (header::SEC_WEBSOCKET_VERSION, "8"), origin], 400, None);
        check(&[key.clone(), version.clone()], 403, None);
        for (given, expected) in [
            ("", 403),
            ("null", 403),
            ("://%zz", 403),
            ("example.com", 403),
            ("http://[", 403),
            ("/path", 101),
            ("app://localhost", 101),
        ] {
            check(&[key.clone(), version.clone(), (header::ORIGIN, given)], expected, None);
        }
        // The origin is checked first.
        check(&[key, version, protocol("one,two")], 403, None);
    }
}
