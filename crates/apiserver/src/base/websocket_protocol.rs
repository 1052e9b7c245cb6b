//! Reads bearer tokens from web socket subprotocols, for browsers, which can set no other header
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/>).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, header};
use pintle_websocket::is_websocket_request;

/// A token among the subprotocols of a web socket.
pub(crate) struct ProtocolToken {
    pub(crate) token: String,
    /// The other subprotocols that the client offers.
    pub(crate) others: HeaderValue,
}

const PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// The token among the subprotocols of a web socket request; `None` without one.
///
/// # Errors
/// When the token is malformed or the only subprotocol. The text does not quote the token.
pub(crate) fn token(headers: &HeaderMap) -> Result<Option<ProtocolToken>, &'static str> {
    if !headers.contains_key(header::SEC_WEBSOCKET_PROTOCOL) || !is_websocket_request(headers) {
        return Ok(None);
    }
    let mut token = None;
    let mut others: Vec<&str> = Vec::new();
    for value in headers.get_all(header::SEC_WEBSOCKET_PROTOCOL) {
        let value = value.to_str().map_err(|_| "a protocol is not text")?;
        for protocol in value.split(',').map(str::trim) {
            let Some(encoded) = protocol.strip_prefix(PREFIX) else {
                others.push(protocol);
                continue;
            };
            if token.is_some() {
                return Err("multiple base64.bearer.authorization tokens specified");
            }
            let decoded = URL_SAFE_NO_PAD.decode(encoded);
            let decoded = decoded.map_err(|_| "invalid base64.bearer.authorization token encoding")?;
            let decoded =
                String::from_utf8(decoded).map_err(|_| "invalid base64.bearer.authorization token")?;
            token = Some(decoded);
        }
    }
    match token.filter(|token| !token.is_empty()) {
        None => Ok(None),
        // One subprotocol has to remain for the response.
        Some(_) if others.is_empty() => Err("missing additional subprotocol"),
        Some(token) => {
            let others = HeaderValue::from_str(&others.join(",")).map_err(|_| "a protocol is not text")?;
            Ok(Some(ProtocolToken { token, others }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_among_protocols() {
        let check = |protocols: &[&str], expected: Result<Option<(&str, &str)>, &str>| {
            let mut headers = HeaderMap::new();
            for protocol in protocols {
                headers.append(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_str(protocol).unwrap());
            }
            assert!(matches!(token(&headers), Ok(None)), "no web socket");
            headers.insert(header::CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
            headers.insert(header::UPGRADE, HeaderValue::from_static("WebSocket"));
            let found = token(&headers);
            let found = found.map(|found| found.map(|found| (found.token, found.others)));
            let found = found.as_ref().map(|found| {
                found.as_ref().map(|(token, others)| (token.as_str(), others.to_str().unwrap()))
            });
            assert_eq!(found.map_err(|error| *error), expected, "{protocols:?}");
        };
        let good = "base64url.bearer.authorization.k8s.io.dG9rZW4";
        check(&[], Ok(None));
        check(&["v4.channel.k8s.io"], Ok(None));
        check(&[&format!("{good}, v4.channel.k8s.io"), "v5"], Ok(Some(("token", "v4.channel.k8s.io,v5"))));
        check(&[good], Err("missing additional subprotocol"));
        check(&[good, good, "a"], Err("multiple base64.bearer.authorization tokens specified"));
        check(&[&format!("{good}="), "a"], Err("invalid base64.bearer.authorization token encoding"));
        check(
            &["base64url.bearer.authorization.k8s.io._w", "a"],
            Err("invalid base64.bearer.authorization token"),
        );
        check(&["base64url.bearer.authorization.k8s.io.", "a"], Ok(None));
    }
}
