//! Tests watches over WebSocket, and clients of them that behave badly.

use crate::harness::{Identity, PATIENCE, Server};
use pintle_websocket::{CloseCode, Event, Opcode, Reader, Role, Writer};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split},
    net::TcpStream,
    time::{Instant, timeout},
};
use tokio_rustls::client::TlsStream;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

struct WebSocket {
    reader: Reader<ReadHalf<TlsStream<TcpStream>>>,
    writer: Writer<WriteHalf<TlsStream<TcpStream>>>,
}

/// A message of the server.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Text(String),
    Binary(Vec<u8>),
    Pong,
    Close(u16),
}

impl WebSocket {
    async fn connect(server: &Server, path: &str) -> WebSocket {
        let mut stream = server.raw(Identity::Admin).await;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: \
             13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: https://console.example.com\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(timeout(PATIENCE, stream.read_u8()).await.unwrap().unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
        let (from, to) = split(stream);
        WebSocket { reader: Reader::new(from, Role::Client), writer: Writer::new(to, Role::Client) }
    }

    /// The next message or control frame; `None` when the connection ended without a close frame.
    async fn next(&mut self) -> Option<Said> {
        let mut message = Vec::new();
        loop {
            match timeout(PATIENCE, self.reader.next()).await.unwrap().ok()?? {
                Event::Piece { is_text, is_last, bytes, .. } => {
                    message.extend_from_slice(&bytes);
                    match (is_last, is_text) {
                        (false, _) => {}
                        (true, true) => return Some(Said::Text(String::from_utf8(message).unwrap())),
                        (true, false) => return Some(Said::Binary(message)),
                    }
                }
                Event::Pong => return Some(Said::Pong),
                Event::Close(code) => return Some(Said::Close(code.unwrap())),
                Event::Ping(_) => panic!("the server sent a ping"),
            }
        }
    }

    /// The next message, as an event.
    async fn event(&mut self) -> (String, String) {
        let Some(Said::Text(text)) = self.next().await else { panic!("no event") };
        assert!(text.ends_with("}\n"), "{text}");
        let event: pintle_machinery::Value = serde_json::from_str(&text).unwrap();
        let field = |pointer: &str| event.pointer(pointer).unwrap().as_str().unwrap().to_owned();
        (field("/type"), field("/object/metadata/name"))
    }
}

async fn create(server: &Server, name: &str, bytes: usize) {
    let data = "x".repeat(bytes);
    let body = format!("{{\"metadata\":{{\"name\":\"{name}\"}},\"data\":{{\"a\":\"{data}\"}}}}");
    let answer = server.send(&format!("POST {MAPS}\n\n{body}")).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
}

/// The number of watches of config maps.
async fn running(server: &Server) -> usize {
    let metrics = server.send("GET /metrics").await;
    let lines = metrics.text().lines().filter(|line| {
        line.starts_with("apiserver_longrunning_requests{") && line.contains("resource=\"configmaps\"")
    });
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as usize).sum()
}

/// Waits until as many watches run.
async fn until_running(server: &Server, expected: usize) {
    let deadline = Instant::now() + PATIENCE;
    while running(server).await != expected {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn event(event_type: &str, name: &str) -> (String, String) {
    (event_type.to_owned(), name.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_is_a_message_and_the_end_a_close_frame() {
    let server = Server::start().await;
    create(&server, "a", 10).await;
    // Larger than the frames into which small events are gathered.
    create(&server, "large", 300_000).await;
    create(&server, "z", 10).await;
    let mut watch = WebSocket::connect(
        &server,
        &format!("{MAPS}?watch=1&fieldSelector=metadata.name!%3Dkube-root-ca.crt"),
    )
    .await;
    for name in ["a", "large", "z"] {
        assert_eq!(watch.event().await, event("ADDED", name));
    }
    until_running(&server, 1).await;
    watch.writer.send(Opcode::Text, b"hello", &[]).await.unwrap();
    watch.writer.send(Opcode::Ping, b"here?", &[]).await.unwrap();
    assert_eq!(watch.next().await, Some(Said::Pong));
    assert_eq!(server.send(&format!("DELETE {MAPS}/a")).await.status, 200);
    assert_eq!(watch.event().await, event("DELETED", "a"));
    // The client closes one watch, the other one ends in time.
    watch.writer.close(CloseCode(1001)).await.unwrap();
    assert_eq!(watch.next().await, Some(Said::Close(1000)));
    until_running(&server, 0).await;
    let path = format!("{MAPS}?watch=1&timeoutSeconds=1&labelSelector=none");
    let mut watch = WebSocket::connect(&server, &path).await;
    assert_eq!(watch.next().await, Some(Said::Close(1000)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_ends_a_watch_and_a_client_that_is_gone_too() {
    let server = Server::start().await;
    let mut watch = WebSocket::connect(&server, &format!("{MAPS}?watch=1&labelSelector=none")).await;
    let gone = WebSocket::connect(&server, &format!("{MAPS}?watch=1&labelSelector=none")).await;
    until_running(&server, 2).await;
    // A server's frames are not masked.
    let mut writer = Writer::new(watch.writer.into_inner(), Role::Server);
    writer.send(Opcode::Text, b"hello", &[]).await.unwrap();
    assert!(matches!(watch.reader.next().await, Ok(Some(Event::Close(Some(1002))))));
    drop((watch.reader, writer, gone));
    until_running(&server, 0).await;
    server.stop().await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_watch_that_is_not_read_is_cut_off() {
    let server = Server::start().await;
    for index in 0..20 {
        create(&server, &format!("large-{index}"), 700_000).await;
    }
    let watch = WebSocket::connect(&server, &format!("{MAPS}?watch=1")).await;
    until_running(&server, 1).await;
    let begun = Instant::now();
    tokio::time::pause();
    while running(&server).await > 0 {
        assert!(begun.elapsed() < Duration::from_secs(100));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    tokio::time::resume();
    assert!(begun.elapsed() > Duration::from_secs(50), "{:?}", begun.elapsed());
    drop(watch);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_ends_its_watches() {
    let mut server = Server::start().await;
    let mut watches = Vec::new();
    for _ in 0..50 {
        watches.push(WebSocket::connect(&server, &format!("{MAPS}?watch=1&labelSelector=none")).await);
    }
    until_running(&server, watches.len()).await;
    let stopped = tokio::spawn(server.take().stop());
    for watch in &mut watches {
        assert_eq!(watch.next().await, Some(Said::Close(1000)));
    }
    // It waits for clients that do not close their connections, but not for long.
    timeout(PATIENCE, stopped).await.unwrap().unwrap().unwrap();
}
