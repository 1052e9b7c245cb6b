//! Tests requests of HTTP/2 that the HTTP library reads otherwise than Go's server.

use crate::{
    harness::Server,
    http2::{DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, Http2, RST_STREAM, frame, get, literal},
};

const PROTOCOL_ERROR: u32 = 1;
/// The status 200, as the response's header block begins.
const OK: u8 = 0x88;

/// A header block with this path: GET and https.
fn with_path(path: &[u8]) -> Vec<u8> {
    [&[0x82, 0x87, 0x04, path.len() as u8], path].concat()
}

/// The library closes the connection for some of them, and with it the requests of other users behind the same proxy.
#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_end_alone() {
    let server = Server::start().await;
    let mut client = Http2::connect(&server, 1 << 20).await;
    client.get(1, "/api/v1/namespaces?watch=1").await;
    assert_eq!(client.soon(&[HEADERS, GOAWAY]).await.unwrap().payload[0], OK);
    let with = |name: &str, value: &str| [get("/version"), literal(name, value)].concat();
    let rows = [
        with_path(b"/version%zz"),
        with_path(b"?a"),
        with("X-Upper", "a"),
        with("", "a"),
        with("a b", "a"),
        with("a", "b\nc"),
        with(":other", "a"),
        with(":scheme", "https"),
        [literal(":method", "G T"), get("/version")[1..].to_vec()].concat(),
        [vec![0x82], literal(":scheme", "refused-te"), with_path(b"/version")[2..].to_vec()].concat(),
    ];
    let mut stream = 1;
    for block in rows {
        stream += 2;
        let head = frame(HEADERS, END_HEADERS | END_STREAM, stream, &block);
        client.send(&head).await.unwrap();
        let reset = client.soon(&[HEADERS, RST_STREAM, GOAWAY]).await.unwrap();
        assert_eq!((reset.kind, reset.stream), (RST_STREAM, stream), "{}", block.escape_ascii());
        assert_eq!(reset.code(), PROTOCOL_ERROR);
        // The connection is usable.
        stream += 2;
        client.get(stream, "/version").await;
        let head = client.soon(&[HEADERS, GOAWAY]).await.unwrap();
        assert_eq!((head.kind, head.stream, head.payload[0]), (HEADERS, stream, OK));
    }
    // However many they are.
    for _ in 0..30 {
        let streams = (0..50).map(|index| stream + 2 + 2 * index);
        let malformed = with("X-Upper", "a");
        let heads: Vec<u8> =
            streams.flat_map(|stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, &malformed)).collect();
        client.send(&heads).await.unwrap();
        for _ in 0..50 {
            assert_eq!(client.soon(&[RST_STREAM, GOAWAY]).await.unwrap().kind, RST_STREAM);
        }
        stream += 100;
    }
    client.get(stream + 2, "/version").await;
    assert_eq!(client.soon(&[HEADERS, GOAWAY]).await.unwrap().payload[0], OK);
    drop(client);
    server.stop().await;
}

/// Clients such as curl, and Go's, send a query as it was given.
#[tokio::test(flavor = "multi_thread")]
async fn paths_and_hosts_are_those_that_go_accepts() {
    let server = Server::start().await;
    let mut client = Http2::connect(&server, 1 << 20).await;
    let with = |name: &str, value: &str| [get("/version"), literal(name, value)].concat();
    let rows = [
        with_path(b"/version?query=up{job=\"a\"} > 0 #"),
        with_path(b"/version?\xff"),
        with(":authority", ""),
        with(":authority", "a_b:c/d"),
        with("te", ""),
        with("content-length", "5"),
    ];
    for (index, block) in rows.into_iter().enumerate() {
        let stream = 2 * u32::try_from(index).unwrap() + 1;
        client.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)).await.unwrap();
        let head = client.soon(&[HEADERS, RST_STREAM, GOAWAY]).await.unwrap();
        assert_eq!((head.kind, head.payload[0]), (HEADERS, OK), "{}", block.escape_ascii());
    }
    drop(client);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_without_meaning_in_http_2_are_told() {
    let server = Server::start().await;
    let mut client = Http2::connect(&server, 1 << 20).await;
    let rows = [
        ("connection", "close", "request header \"Connection\" is not valid in HTTP/2\n"),
        ("upgrade", "x", "request header \"Upgrade\" is not valid in HTTP/2\n"),
        ("te", "gzip", "request header \"TE\" may only be \"trailers\" in HTTP/2\n"),
    ];
    for (index, (name, value, expected)) in rows.into_iter().enumerate() {
        let stream = 2 * u32::try_from(index).unwrap() + 1;
        let block = [get("/version"), literal(name, value)].concat();
        client.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)).await.unwrap();
        let head = client.soon(&[HEADERS, RST_STREAM, GOAWAY]).await.unwrap();
        // The status 400, by index.
        assert_eq!((head.kind, head.payload[0]), (HEADERS, 0x8c), "{name}");
        let body = client.soon(&[DATA]).await.unwrap();
        assert_eq!(String::from_utf8(body.payload).unwrap(), expected);
    }
    drop(client);
    server.stop().await;
}
