//! Connections to ports of a pod.

use crate::session::{PROTOCOL_VERSION, SPDY, is_spdy};
use base64::prelude::{BASE64_STANDARD, Engine};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use pintle_proxy::{Connection, Throttled};
use pintle_websocket::{CloseCode, Event, Handshake, Opcode, Reader, Role, Writer, is_websocket_request};
use std::{io, pin::Pin};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split},
    sync::Mutex,
};

/// The prefix and suffix of the subprotocols that are translated. Between them is the protocol inside of SPDY.
const PREFIX: &str = "SPDY/3.1+";
const SUFFIX: &str = ".k8s.io";
/// The most bytes of a message to a client.
const MESSAGE_BYTES: usize = 32 << 10;
/// The buffer size while little is received, in bytes: an idle connection holds no more.
const IDLE_BYTES: usize = 512;

/// A client that speaks SPDY inside of WebSocket, to ports of a pod on a node that speaks SPDY.
#[derive(Debug)]
pub struct Ports {
    handshake: Handshake,
}

/// The reason why a client is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status of the response.
    pub status: StatusCode,
    /// The text of the response.
    pub text: &'static str,
}

impl Ports {
    /// Whether a request is of a client that is translated.
    pub fn translates(headers: &HeaderMap) -> bool {
        is_websocket_request(headers) && offered(headers).next().is_some()
    }

    /// Reads the handshake of a client.
    ///
    /// # Errors
    /// When the client cannot switch to WebSocket.
    pub fn read(method: &Method, headers: &HeaderMap) -> Result<Ports, Refusal> {
        let refusal =
            |status: StatusCode| Refusal { status, text: status.canonical_reason().unwrap_or_default() };
        let handshake = Handshake::read(method, headers).map_err(|error| refusal(error.status()))?;
        let key = headers.get(header::SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes).unwrap_or_default();
        match BASE64_STANDARD.decode(key.trim_ascii()) {
            Ok(key) if key.len() == 16 => Ok(Ports { handshake }),
            _ => Err(refusal(StatusCode::BAD_REQUEST)),
        }
    }

    /// Turns the headers of the client's request into those of a request to upgrade to SPDY, which is a POST.
    pub fn ask_for_spdy(headers: &mut HeaderMap) {
        let protocols: Vec<HeaderValue> =
            offered(headers).filter_map(|protocol| HeaderValue::from_str(protocol).ok()).collect();
        for name in [header::SEC_WEBSOCKET_PROTOCOL, header::SEC_WEBSOCKET_KEY, header::SEC_WEBSOCKET_VERSION]
        {
            headers.remove(name);
        }
        headers.insert(header::UPGRADE, HeaderValue::from_static(SPDY));
        headers.remove(PROTOCOL_VERSION);
        for protocol in protocols {
            headers.append(PROTOCOL_VERSION, protocol);
        }
    }

    /// The response to the client when the node has switched protocols.
    ///
    /// # Errors
    /// When the node has switched to something else.
    pub fn response(&self, headers: &HeaderMap) -> Result<Response<()>, Refusal> {
        if !is_spdy(headers) {
            return Err(Refusal {
                status: StatusCode::INTERNAL_SERVER_ERROR,
                text: "unable to upgrade: missing upgrade headers in response",
            });
        }
        let chosen = headers.get(PROTOCOL_VERSION).and_then(|value| value.to_str().ok()).map(str::trim);
        let chosen = chosen.filter(|chosen| !chosen.is_empty()).map(|chosen| format!("{PREFIX}{chosen}"));
        let chosen = chosen.filter(|chosen| self.handshake.protocols().contains(chosen));
        Ok(self.handshake.response(chosen.and_then(|chosen| HeaderValue::try_from(chosen).ok())))
    }

    /// Carries the bytes of the node in messages to the client, and those in the client's messages to the node, until one
    /// of them has ended.
    pub fn carry(
        client: Connection,
        node: Throttled<Connection>,
    ) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send>> {
        Box::pin(carry(client, node))
    }
}

/// The protocols inside of SPDY that a client offers.
fn offered(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let protocols = headers.get(header::SEC_WEBSOCKET_PROTOCOL).and_then(|value| value.to_str().ok());
    let protocols = protocols.unwrap_or_default().split(',').map(str::trim);
    protocols.filter_map(|protocol| {
        let inner = protocol.strip_prefix(PREFIX)?;
        protocol.ends_with(SUFFIX).then_some(inner)
    })
}

async fn carry<C, N>(client: C, node: N) -> io::Result<()>
where
    C: AsyncRead + AsyncWrite,
    N: AsyncRead + AsyncWrite,
{
    let (from_client, to_client) = split(client);
    let (from_node, to_node) = split(node);
    tokio::pin!(from_client, to_client, from_node, to_node);
    let writer = Mutex::new(Writer::new(to_client, Role::Server));
    let mut reader = Reader::new(from_client, Role::Server);
    let up = async {
        loop {
            match reader.next().await.map_err(io::Error::other)? {
                Some(Event::Piece { is_text: false, bytes, .. }) => {
                    to_node.write_all(&bytes).await?;
                    to_node.flush().await?;
                }
                Some(Event::Piece { is_text: true, .. }) => return Err(io::ErrorKind::InvalidData.into()),
                Some(Event::Ping(bytes)) => writer.lock().await.send(Opcode::Pong, &bytes, &[]).await?,
                Some(Event::Pong) => {}
                Some(Event::Close(_)) | None => return Ok(()),
            }
        }
    };
    let down = async {
        let mut buffer = vec![0; IDLE_BYTES];
        loop {
            let read = from_node.read(&mut buffer).await?;
            match buffer.get(..read) {
                None | Some([]) => return Ok(()),
                Some(bytes) => writer.lock().await.send(Opcode::Binary, bytes, &[]).await?,
            }
            match (read, buffer.len()) {
                (IDLE_BYTES, IDLE_BYTES) => buffer = vec![0; MESSAGE_BYTES],
                (..=IDLE_BYTES, MESSAGE_BYTES) => buffer = vec![0; IDLE_BYTES],
                _ => {}
            }
        }
    };
    let carried = tokio::select! {
        carried = up => carried,
        carried = down => carried,
    };
    writer.lock().await.close(CloseCode::NORMAL).await.ok();
    to_node.shutdown().await.ok();
    carried
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::duplex;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    fn request(protocols: &'static str) -> HeaderMap {
        headers(&[
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-version", "13"),
            ("sec-websocket-protocol", protocols),
        ])
    }

    #[test]
    fn requests_are_translated() {
        let mut asked = request("v4.channel.k8s.io, SPDY/3.1+portforward.k8s.io, SPDY/3.1+other");
        assert!(Ports::translates(&asked));
        assert!(!Ports::translates(&request("SPDY/3.1+other, v4.channel.k8s.io")));
        let ports = Ports::read(&Method::GET, &asked).unwrap();
        assert_eq!(Ports::read(&Method::POST, &asked).unwrap_err().text, "Method Not Allowed");
        Ports::ask_for_spdy(&mut asked);
        let expected = headers(&[
            ("connection", "Upgrade"),
            ("upgrade", "SPDY/3.1"),
            ("x-stream-protocol-version", "portforward.k8s.io"),
        ]);
        assert_eq!(asked, expected);
        let response = ports.response(&expected).unwrap();
        assert_eq!(response.headers()["sec-websocket-protocol"], "SPDY/3.1+portforward.k8s.io");
        assert_eq!(ports.response(&HeaderMap::new()).unwrap_err().status, 500);
    }

    #[tokio::test]
    async fn bytes_pass_in_messages() {
        let (client, near) = duplex(1024);
        let (far, mut node) = duplex(1024);
        let carrying = tokio::spawn(carry(near, far));
        let (input, output) = split(client);
        let (mut reader, mut writer) = (Reader::new(input, Role::Client), Writer::new(output, Role::Client));
        writer.send(Opcode::Binary, b"to the ", b"node").await.unwrap();
        let mut read = [0; 11];
        node.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"to the node");
        writer.send(Opcode::Ping, b"p", &[]).await.unwrap();
        assert_eq!(reader.next().await.unwrap(), Some(Event::Pong));
        node.write_all(b"back").await.unwrap();
        assert!(
            matches!(reader.next().await.unwrap(), Some(Event::Piece { bytes, .. }) if &*bytes == b"back")
        );
        node.shutdown().await.unwrap();
        assert_eq!(reader.next().await.unwrap(), Some(Event::Close(Some(1000))));
        carrying.await.unwrap().unwrap();
    }
}
