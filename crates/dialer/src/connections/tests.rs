//! Tests with servers in this process, without TLS.

use super::*;
use crate::{
    Destination, Dialer,
    kept::{IDLE_TIMEOUT, MAX_IDLE},
};
use bytes::Bytes;
use http::Method;
use http_body_util::{BodyExt, Full};
use rustls::pki_types::ServerName;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

const LIMIT: usize = 1 << 20;
const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const IN_CHUNKS: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n";
const LAST: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";

/// A server that sends these responses on each connection and then closes it. Responses begin with the number of the
/// connection in a header.
async fn server(responses: &'static [&'static str]) -> Uri {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for connection in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut bytes = [0; 1024];
                for response in responses {
                    // Requests are small and arrive whole.
                    if stream.read(&mut bytes).await.unwrap() == 0 {
                        return;
                    }
                    let (line, rest) = response.split_once("\r\n").unwrap();
                    let response = format!("{line}\r\nconnection-number: {connection}\r\n{rest}");
                    stream.write_all(response.as_bytes()).await.unwrap();
                }
            });
        }
    });
    format!("http://{address}/x").parse().unwrap()
}

fn connections() -> Connections {
    let server_name = ServerName::try_from("a").ok();
    Connections::new(Connector {
        destination: Destination::Url,
        server_name,
        tls: None,
        timeout: None,
        dialer: Dialer::default(),
        peers: None,
    })
}

/// Sends a request and returns the number of its connection.
async fn send(connections: &Connections, uri: &Uri) -> usize {
    let body = Full::new(Bytes::from_static(b"{}")).map_err(|never| match never {}).boxed_unsync();
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri.clone();
    let (head, body) = connections.send(request).await.unwrap().into_parts();
    assert_eq!(&*body.whole(LIMIT).await.unwrap(), b"ok");
    head.headers["connection-number"].to_str().unwrap().parse().unwrap()
}

impl Connections {
    fn idle(&self) -> usize {
        self.kept.counts().0
    }
}

#[tokio::test]
async fn requests_after_each_other_share_a_connection() {
    let uri = server(&[WHOLE, IN_CHUNKS, WHOLE, LAST]).await;
    let connections = connections();
    for expected in [0, 0, 0, 0, 1] {
        assert_eq!(send(&connections, &uri).await, expected);
    }
    assert_eq!(connections.idle(), 1);
}

#[tokio::test]
async fn requests_at_the_same_time_have_connections_of_their_own() {
    let uri = server(&[WHOLE, WHOLE]).await;
    let connections = connections();
    let (first, second) = tokio::join!(send(&connections, &uri), send(&connections, &uri));
    assert_ne!(first, second);
    assert_eq!(connections.idle(), 2);
}

#[tokio::test]
async fn a_connection_that_was_closed_while_it_was_idle_is_not_used() {
    let uri = server(&[WHOLE]).await;
    let connections = connections();
    for expected in 0..3 {
        assert_eq!(send(&connections, &uri).await, expected);
        let address = uri.authority().unwrap();
        while let Some(Connection::Http1(connection)) = connections.kept.take(address) {
            connections.kept.keep(address.clone(), connection);
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_dropped_request_closes_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri: Uri = format!("http://{}/x", listener.local_addr().unwrap()).parse().unwrap();
    let connections = connections();
    let mut stream = tokio::select! {
        _ = send(&connections, &uri) => unreachable!("the server sends nothing"),
        stream = async {
            let mut stream = listener.accept().await.unwrap().0;
            assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0);
            stream
        } => stream,
    };
    assert_eq!(stream.read(&mut [0; 1024]).await.unwrap(), 0);
    assert_eq!(connections.idle(), 0);
}

#[tokio::test]
async fn connections_are_kept_for_a_time_and_not_too_many() {
    let uri = server(&[WHOLE, WHOLE]).await;
    let connections = connections();
    futures_util::future::join_all((0..MAX_IDLE + 5).map(|_| send(&connections, &uri))).await;
    assert_eq!(connections.idle(), MAX_IDLE);
    tokio::time::pause();
    tokio::time::sleep(IDLE_TIMEOUT / 2).await;
    send(&connections, &uri).await;
    tokio::time::sleep(IDLE_TIMEOUT / 2 + Duration::from_secs(1)).await;
    assert_eq!(connections.idle(), 0, "the one that was used is at its end");
    assert!(!connections.kept.is_watched());
    send(&connections, &uri).await;
    assert_eq!(connections.idle(), 1);
}

#[tokio::test]
async fn a_body_that_is_dropped_early_closes_its_connection() {
    let uri = server(&["HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok", WHOLE]).await;
    let connections = connections();
    let mut request = Request::new(crate::empty_body());
    *request.uri_mut() = uri.clone();
    let mut body = connections.send(request).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "ok");
    drop(body);
    assert_eq!(connections.idle(), 0);
    let mut request = Request::new(crate::empty_body());
    *request.uri_mut() = uri;
    let response = connections.send(request).await.unwrap();
    assert_eq!(response.headers()["connection-number"], "1");
}

#[tokio::test]
async fn each_address_has_connections_of_its_own() {
    let responses = &[WHOLE, WHOLE, WHOLE];
    let uris = [server(responses).await, server(responses).await];
    let connections = connections();
    for uri in uris.iter().chain(&uris) {
        assert_eq!(send(&connections, uri).await, 0);
    }
    assert_eq!(connections.idle(), 2);
}
