//! Carries a text in WebSocket messages: browsers cannot read a response that has not ended
//! (<https://kubernetes.io/docs/reference/using-api/api-concepts/>).

use crate::base::{
    body::Body,
    response::Response,
    websocket::{WebSocketFrames, handshake, refusal},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, future, stream};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::Frame;
use http_body_util::BodyStream;
use pintle_websocket::{Handshake, Opcode, put_frame};

/// The maximum number of bytes of the text in a message.
const MESSAGE_BYTES: usize = 2048;

/// A client that takes a text in messages.
pub(crate) struct Messages {
    handshake: Handshake,
    protocol: &'static str,
    opcode: Opcode,
}

impl Messages {
    /// Reads the handshake of a request. The first subprotocol that is known is taken, and no subprotocol is one, too.
    ///
    /// # Errors
    /// The response that refuses the handshake, without a body.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Messages, Box<Response>> {
        let handshake = handshake(headers)?;
        let known = |protocol: &str| match protocol {
            "" => Some(("", Opcode::Binary)),
            "binary.k8s.io" => Some(("binary.k8s.io", Opcode::Binary)),
            "base64.binary.k8s.io" => Some(("base64.binary.k8s.io", Opcode::Text)),
            _ => None,
        };
        let chosen = match handshake.protocols() {
            [] => known(""),
            offered => offered.iter().find_map(|protocol| known(protocol)),
        };
        let Some((protocol, opcode)) = chosen else { return Err(refusal(StatusCode::FORBIDDEN)) };
        Ok(Messages { handshake, protocol, opcode })
    }

    /// The response that switches protocols and sends a text. An empty message precedes it.
    pub(crate) fn response(self, text: Body) -> Response {
        let opcode = self.opcode;
        let pieces = BodyStream::new(text)
            .take_while(|piece| future::ready(piece.is_ok()))
            .filter_map(|piece| future::ready(data(piece.ok())));
        let frames = stream::once(future::ready(Bytes::new()))
            .chain(pieces)
            .map(move |piece| messages(opcode, &piece));
        let mut response = self.handshake.response(Some(HeaderValue::from_static(self.protocol)));
        response.extensions_mut().insert(WebSocketFrames);
        response.map(|()| Body::Stream(Box::pin(frames)))
    }
}

fn data(piece: Option<Frame<Bytes>>) -> Option<Bytes> {
    piece?.into_data().ok().filter(|data| !data.is_empty())
}

/// The messages of a piece of the text; an empty piece is an empty message.
fn messages(opcode: Opcode, piece: &[u8]) -> Bytes {
    let mut frames = BytesMut::new();
    let mut rest = piece;
    loop {
        let (message, after) = rest.split_at(rest.len().min(MESSAGE_BYTES));
        match opcode {
            Opcode::Text => put_frame(&mut frames, opcode, STANDARD.encode(message).as_bytes()),
            _ => put_frame(&mut frames, opcode, message),
        }
        rest = after;
        if rest.is_empty() {
            return frames.freeze();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header;
    use http_body_util::BodyExt;

    fn request(protocol: Option<&'static str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::SEC_WEBSOCKET_KEY, HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ=="));
        headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        if let Some(protocol) = protocol {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
        }
        headers
    }

    #[test]
    fn a_known_subprotocol_is_chosen() {
        let check = |offered: Option<&'static str>, expected: Option<&str>| {
            let chosen = Messages::read(&request(offered));
            let refused = chosen.as_ref().err().map(|response| response.status().as_u16());
            assert_eq!(refused, expected.is_none().then_some(403), "{offered:?}");
            let Ok(chosen) = chosen else { return };
            let response = chosen.response(Body::empty());
            assert_eq!(response.status(), 101);
            let header = response.headers().get(header::SEC_WEBSOCKET_PROTOCOL).unwrap();
            assert_eq!(header.to_str().ok(), expected, "{offered:?}");
        };
        check(None, Some(""));
        check(Some("binary.k8s.io"), Some("binary.k8s.io"));
        check(Some("v4.channel.k8s.io, base64.binary.k8s.io, binary.k8s.io"), Some("base64.binary.k8s.io"));
        check(Some("v4.channel.k8s.io"), None);
        let mut headers = request(None);
        headers.remove(header::SEC_WEBSOCKET_KEY);
        assert_eq!(Messages::read(&headers).err().map(|response| response.status().as_u16()), Some(400));
    }

    #[tokio::test]
    async fn a_text_is_cut_into_messages() {
        let check = async |protocol: &'static str, text: &[u8], expected: &[&[u8]]| {
            let messages = Messages::read(&request(Some(protocol))).unwrap_or_else(|_| unreachable!());
            let text = Bytes::copy_from_slice(text);
            let response = messages.response(Body::from(text));
            let sent = response.into_body().collect().await.unwrap_or_else(|_| unreachable!()).to_bytes();
            assert_eq!(sent, expected.concat(), "{protocol}");
        };
        check("binary.k8s.io", b"", &[&[0x82, 0]]).await;
        check("binary.k8s.io", b"abc", &[&[0x82, 0], &[0x82, 3], b"abc"]).await;
        check("base64.binary.k8s.io", b"abc", &[&[0x81, 0], &[0x81, 4], b"YWJj"]).await;
        let long = [b'x'; MESSAGE_BYTES + 1];
        let first: &[u8] = &long[..MESSAGE_BYTES];
        check("binary.k8s.io", &long, &[&[0x82, 0], &[0x82, 126, 8, 0], first, &[0x82, 1], b"x"]).await;
    }
}
