//! Tests clients that do not read their responses: they are cut off, and other clients are not affected.
//!
//! A paused clock advances whenever all tasks wait, so that timeouts take no time.

use crate::{
    harness::{Identity, PATIENCE, Server},
    http2::{DATA, HEADERS, Http2, RST_STREAM, WINDOW_UPDATE, frame},
};
use std::{ops::Range, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{Instant, timeout},
};

/// Creates objects of `bytes` bytes each.
async fn fill(server: &Server, count: usize, bytes: usize) {
    for index in 0..count {
        let data = "x".repeat(bytes);
        let body = format!("{{\"metadata\":{{\"name\":\"large-{index}\"}},\"data\":{{\"a\":\"{data}\"}}}}");
        let headers = [("Content-Type", "application/json")];
        let path = "/api/v1/namespaces/default/configmaps";
        assert_eq!(server.exchange("POST", path, &headers, body).await.status, 201);
    }
}

fn seconds(range: Range<u64>) -> Range<Duration> {
    Duration::from_secs(range.start)..Duration::from_secs(range.end)
}

/// How long a stream with this initial window lasts until it is reset.
async fn resets(server: &Server, window: u32, path: &str) -> Duration {
    let mut client = Http2::connect(server, window).await;
    client.get(1, path).await;
    assert_eq!(client.soon(&[HEADERS]).await.unwrap().stream, 1);
    // Others are served while the response is not read.
    server.assert_lives().await;
    let begun = Instant::now();
    tokio::time::pause();
    let reset = client.next(&[RST_STREAM]).await.unwrap();
    let took = begun.elapsed();
    tokio::time::resume();
    assert_eq!(reset.stream, 1);
    // The connection is still usable.
    client.get(3, "/livez").await;
    assert_eq!(client.soon(&[HEADERS]).await.unwrap().stream, 3);
    took
}

#[tokio::test(flavor = "current_thread")]
async fn a_list_that_is_not_read_ends_with_the_time_of_its_request() {
    let server = Server::start().await;
    fill(&server, 3, 150_000).await;
    let all = "/api/v1/configmaps";
    let one = "/api/v1/namespaces/default/configmaps/large-0";
    for (window, path) in [(0, all), (1, all), (0, one), (1, one), (140_000, one)] {
        let took = resets(&server, window, path).await;
        assert!(seconds(58..62).contains(&took), "{window} {path}: {took:?}");
    }
    for window in [0, 1] {
        let took = resets(&server, window, &format!("{all}?timeout=5s")).await;
        assert!(seconds(4..7).contains(&took), "{took:?}");
    }
    server.assert_lives().await;
    server.stop().await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_watch_that_is_not_read_ends_with_its_time_at_the_latest() {
    let server = Server::start().await;
    fill(&server, 2, 150_000).await;
    let watch = "/api/v1/configmaps?watch=1";
    for window in [0, 1] {
        let took = resets(&server, window, &format!("{watch}&timeoutSeconds=20")).await;
        assert!(seconds(28..32).contains(&took), "{took:?}");
        let took = resets(&server, window, &format!("{watch}&timeoutSeconds=100000000")).await;
        assert!(seconds(58..62).contains(&took), "{took:?}");
    }
    server.stop().await;
}

/// The number of watches of config maps.
async fn watches(server: &Server) -> f64 {
    let metrics = server.send("GET /metrics").await;
    let is_wanted = |line: &&str| {
        line.starts_with("apiserver_longrunning_requests") && line.contains("resource=\"configmaps\"")
    };
    let line = metrics.text().lines().find(is_wanted);
    line.and_then(|line| line.rsplit_once(' ')).map_or(0.0, |(_, value)| value.parse().unwrap())
}

/// The flow-control window is that of the TCP connection.
#[tokio::test(flavor = "current_thread")]
async fn a_connection_that_accepts_nothing_is_closed() {
    let server = Server::start().await;
    // More than all buffers of the system hold.
    fill(&server, 16, 1_000_000).await;
    for (path, range) in [
        ("/api/v1/configmaps?watch=1&timeoutSeconds=100000000", 55..70),
        ("/api/v1/configmaps", 55..65),
        ("/api/v1/configmaps?timeout=5s", 4..8),
    ] {
        let mut stream = server.raw(Identity::Admin).await;
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = vec![0; 15];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, b"HTTP/1.1 200 OK");
        server.assert_lives().await;
        let is_watch = path.contains("watch");
        let begun = Instant::now();
        tokio::time::pause();
        if is_watch {
            while watches(&server).await > 0.0 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                assert!(begun.elapsed() < Duration::from_secs(100));
            }
            let took = begun.elapsed();
            assert!(seconds(range).contains(&took), "{path}: {took:?}");
        } else {
            // Neither before its time nor after it.
            tokio::time::sleep(Duration::from_secs(range.end)).await;
        }
        tokio::time::resume();
        timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().ok();
        assert!(!answer.ends_with(b"0\r\n\r\n"), "{path}: all of it came");
    }
    server.assert_lives().await;
    server.stop().await;
}

/// Unread responses share the memory budget; the slowest readers are cut off.
#[tokio::test(flavor = "current_thread")]
async fn unsent_responses_share_their_memory() {
    let server = Server::start_with(|options| options.response_memory = 1_000_000).await;
    fill(&server, 1, 300_000).await;
    let path = "/api/v1/namespaces/default/configmaps/large-0";
    let mut client = Http2::connect(&server, 0).await;
    for stream in [1, 3, 5] {
        client.get(stream, path).await;
        let head = client.soon(&[HEADERS]).await.unwrap();
        // The status 200, HPACK-encoded.
        assert_eq!((head.stream, head.payload[0]), (stream, 0x88));
    }
    let refused = server.send(&format!("GET {path}")).await;
    assert_eq!((refused.status, refused.header("Retry-After")), (429, "1"), "{}", refused.text());
    // Small responses and the responses to writes are sent all the same.
    assert_eq!(server.send("GET /api/v1/namespaces/default").await.status, 200);
    let patch =
        format!("PATCH {path}\nContent-Type: application/merge-patch+json\n\n{{\"data\":{{\"b\":\"c\"}}}}");
    assert_eq!(server.send(&patch).await.status, 200);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(6)).await;
    tokio::time::resume();
    assert_eq!(server.send(&format!("GET {path}")).await.status, 429);
    let reset = client.soon(&[RST_STREAM]).await.unwrap();
    assert_eq!(reset.stream, 1);
    assert_eq!(server.send(&format!("GET {path}")).await.status, 200);
    // The last response, which fits the budget, is sent when it is read.
    client.send(&frame(WINDOW_UPDATE, 0, 5, &400_000_u32.to_be_bytes())).await.unwrap();
    assert_eq!(client.soon(&[DATA]).await.unwrap().stream, 5);
    drop(client);
    server.assert_lives().await;
    server.stop().await;
}
