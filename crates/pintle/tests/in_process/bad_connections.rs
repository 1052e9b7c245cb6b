//! Tests connections that violate the protocol: they are closed, and other connections are not affected.

use crate::{
    harness::{Identity, PATIENCE, Server},
    http2::{HEADERS, Http2},
};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout},
};

/// Sends bytes and returns the response until the server closes.
async fn exchange(server: &Server, bytes: &[u8]) -> String {
    let mut stream = server.raw(Identity::Admin).await;
    // The server may close before all bytes are sent.
    stream.write_all(bytes).await.ok();
    stream.flush().await.ok();
    let mut answer = Vec::new();
    // The connection may be reset, since the server has not read all bytes.
    timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().ok();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_behind_a_request_ends_the_connection() {
    let server = Server::start().await;
    let answer =
        exchange(&server, b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n\0\xff\x01garbage\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    server.assert_lives().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_none_are_refused() {
    let server = Server::start().await;
    let flood: String = (0..1000).map(|index| format!("x-{index}: y\r\n")).collect();
    let long = format!("GET / HTTP/1.1\r\nHost: x\r\nx: {}\r\n\r\n", "y".repeat(2_000_000));
    let path = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(1_000_000));
    let flood = format!("GET / HTTP/1.1\r\nHost: x\r\n{flood}\r\n");
    let rows = [
        ("no method", "\0\0\0\0\r\n\r\n", "400 Bad Request"),
        ("a header without colon", "GET / HTTP/1.1\r\nHost x\r\n\r\n", "400 Bad Request"),
        (
            "two lengths",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "400 Bad Request",
        ),
        (
            "a length that is none",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
            "400 Bad Request",
        ),
        ("too many headers", &flood, "431 Request Header Fields Too Large"),
        ("a header too long", &long, "431 Request Header Fields Too Large"),
        ("a path too long", &path, "431 Request Header Fields Too Large"),
    ];
    let mut wrong = Vec::new();
    for (what, request, expected) in rows {
        let answer = exchange(&server, request.as_bytes()).await;
        let line = answer.lines().next().unwrap_or_default();
        if line.strip_prefix("HTTP/1.1 ") != Some(expected) {
            wrong.push(format!("{what}: {line:?}"));
        }
        server.assert_lives().await;
    }
    assert_eq!(wrong, [""; 0]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_headers_on_http_2_is_refused() {
    let server = Server::start().await;
    let client = server.client(Identity::Admin).await;
    let names: Vec<String> = (0..9000).map(|index| format!("x-header-{index}")).collect();
    let value = "y".repeat(100);
    let headers: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), value.as_str())).collect();
    let refused = client.begin("GET", "/version", &headers, crate::harness::whole("")).await.unwrap();
    assert_eq!(refused.status(), 431);
    server.assert_lives().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selector_as_long_as_a_url_may_be_is_served() {
    let server = Server::start().await;
    let names: Vec<String> = (0..2500).map(|index| format!("application-{index}")).collect();
    let path = format!("/api/v1/configmaps?labelSelector=app%20in%20({})", names.join(","));
    assert!(path.len() > 40_000);
    let answer = server.send(&format!("GET {path}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_tls_ends_the_connection() {
    let server = Server::start().await;
    let told = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
    let rows: [(&[u8], &str); 6] = [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", told),
        (b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n.", told),
        (b"DELETE /api HTTP/1.1\r\nHost: x\r\n\r\n", ""),
        (&[0; 1000], ""),
        (&[0xff; 5], ""),
        (b"GE", ""),
    ];
    for (bytes, expected) in rows {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.ok();
        let mut answer = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().ok();
        assert_eq!(String::from_utf8_lossy(&answer), expected);
    }
    let broken: [&[u8]; 2] = [&[0x16, 3, 1, 0xff, 0xff, 1, 2, 3], &[0x16]];
    for bytes in broken {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.ok();
        let mut answer = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().ok();
        assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    }
    server.assert_lives().await;
    server.stop().await;
}

/// The clock is paused: it advances whenever all tasks wait, so that timeouts take no time.
#[tokio::test(flavor = "current_thread")]
async fn a_client_that_never_ends_its_headers_is_cut_off() {
    let server = Server::start().await;
    let mut stream = server.raw(Identity::Admin).await;
    stream.write_all(b"GET /version HTTP/1.1\r\nHost: x\r\nx-slow: ").await.unwrap();
    stream.flush().await.unwrap();
    let begun = Instant::now();
    tokio::time::pause();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok();
    let took = begun.elapsed();
    tokio::time::resume();
    assert!((Duration::from_secs(25)..Duration::from_secs(60)).contains(&took), "{took:?}");
    assert_eq!(String::from_utf8_lossy(&answer), "", "it is cut off without an answer");
    server.assert_lives().await;
    server.stop().await;
}

/// As above, for a client that never starts the TLS handshake.
#[tokio::test(flavor = "current_thread")]
async fn a_client_that_never_shakes_hands_is_cut_off() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(&[0x16, 3, 1]).await.unwrap();
    let begun = Instant::now();
    tokio::time::pause();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok();
    let took = begun.elapsed();
    tokio::time::resume();
    assert!((Duration::from_secs(5)..Duration::from_secs(30)).contains(&took), "{took:?}");
    server.assert_lives().await;
    server.stop().await;
}

/// Sends the head of a request, then its body in pieces; returns the status and whether the connection is usable.
async fn send_in_pieces(server: &Server, head: &str, pieces: &[&[u8]]) -> (String, bool) {
    let mut stream = server.raw(Identity::Admin).await;
    stream.write_all(head.as_bytes()).await.unwrap();
    for piece in pieces {
        stream.flush().await.unwrap();
        // The server may answer and close before the next piece.
        tokio::task::yield_now().await;
        stream.write_all(piece).await.unwrap();
    }
    let mut buffer = vec![0; 64 * 1024];
    let read = timeout(PATIENCE, stream.read(&mut buffer)).await.unwrap().unwrap();
    let status = String::from_utf8_lossy(&buffer[..read]).split(' ').nth(1).unwrap_or_default().to_owned();
    let again = "GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let mut rest = Vec::new();
    let is_usable = stream.write_all(again.as_bytes()).await.is_ok()
        && timeout(PATIENCE, stream.read_to_end(&mut rest)).await.unwrap().is_ok();
    (status, is_usable && String::from_utf8_lossy(&rest).contains("gitVersion"))
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_a_body_that_nobody_wants_gets_the_answer_all_the_same() {
    let server = Server::start().await;
    let piece = vec![b'x'; 64 * 1024];
    let pieces: Vec<&[u8]> = vec![&piece; 16];
    let length = piece.len() * pieces.len();
    for (method, path, status) in [
        ("PATCH", "/api/v1/namespaces/default/configmaps", "405"),
        ("PUT", "/apis/apps/v1/deployments", "405"),
        ("PATCH", "/apis/nope.io/v1/things", "404"),
        ("POST", "/version", "405"),
    ] {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
        for _ in 0..5 {
            assert_eq!(send_in_pieces(&server, &head, &pieces).await, (status.to_owned(), true), "{head}");
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_come_holds_an_answer_up_for_a_moment_only() {
    let server = Server::start().await;
    let started = Instant::now();
    let head = b"PATCH /apis/nope.io/v1/things HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc";
    let answer = exchange(&server, head).await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(started.elapsed() < PATIENCE);
    // A client that sends `Expect: 100-continue` is not asked for the body.
    let asking =
        b"PATCH /apis/nope.io/v1/things HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n";
    let answer = exchange(&server, asking).await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("\r\nconnection: close\r\n"), "{answer}");
    server.stop().await;
}

const POST_WITHOUT_END: &[u8] = b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\n\
    Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"metadata\":";

/// The clock is paused, as above: the request timeout includes reading the body.
#[tokio::test(flavor = "current_thread")]
async fn a_body_that_never_ends_has_the_time_of_its_request_and_no_seat_beyond_it() {
    let server = Server::start().await;
    let mut stream = server.raw(Identity::Admin).await;
    stream.write_all(POST_WITHOUT_END).await.unwrap();
    stream.flush().await.unwrap();
    let begun = Instant::now();
    tokio::time::pause();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok();
    let took = begun.elapsed();
    tokio::time::resume();
    assert!((Duration::from_secs(59)..Duration::from_secs(90)).contains(&took), "{took:?}");
    assert!(answer.starts_with(b"HTTP/1.1 504"), "{}", String::from_utf8_lossy(&answer));
    let executing = |metrics: &str| {
        let seats =
            metrics.lines().filter(|line| line.starts_with("apiserver_flowcontrol_current_executing_seats"));
        seats.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum::<f64>()
    };
    let deadline = Instant::now() + PATIENCE;
    // The request for the metrics has a seat itself.
    while executing(server.send("GET /metrics").await.text()) > 1.0 {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_never_ends_does_not_hold_up_the_end_of_the_server() {
    let mut server = Server::start().await;
    let mut stream = server.raw(Identity::Admin).await;
    stream.write_all(POST_WITHOUT_END).await.unwrap();
    stream.flush().await.unwrap();
    let (mut reader, mut writer) = tokio::io::split(stream);
    let dripping = tokio::spawn(async move {
        while writer.write_all(b" ").await.is_ok() && writer.flush().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    server.assert_lives().await;
    let begun = Instant::now();
    timeout(PATIENCE, server.take().stop()).await.unwrap().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    let mut answer = Vec::new();
    timeout(PATIENCE, reader.read_to_end(&mut answer)).await.unwrap().ok();
    assert!(answer.starts_with(b"HTTP/1.1 503"), "{}", String::from_utf8_lossy(&answer));
    dripping.abort();
}

/// A body that is being read has its share of the memory budget: other requests get 429.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_share_their_memory() {
    let server = Server::start_with(|options| options.request_body_memory = 64 * 1024).await;
    let body =
        format!("{{\"metadata\":{{\"name\":\"large\"}},\"data\":{{\"a\":\"{}\"}}}}", "x".repeat(50_000));
    let (begin, end) = body.split_at(40_000);
    let head = format!(
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{begin}",
        body.len()
    );
    let small =
        "POST /api/v1/namespaces/default/configmaps?dryRun=All\n\n{\"metadata\":{\"name\":\"small\"}}";
    let deadline = Instant::now() + PATIENCE;
    let (mut stream, refused) = 'begun: loop {
        let mut stream = server.raw(Identity::Admin).await;
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        // The large body is refused itself when a small one comes first, and is sent again.
        for _ in 0..20 {
            let answer = server.send(small).await;
            if answer.status != 201 {
                break 'begun (stream, answer);
            }
        }
        assert!(Instant::now() < deadline);
    };
    assert_eq!((refused.status, refused.header("Retry-After")), (429, "1"), "{}", refused.text());
    server.assert_lives().await;
    stream.write_all(end.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    let mut answer = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().ok();
    assert!(answer.starts_with(b"HTTP/1.1 201"), "{}", String::from_utf8_lossy(&answer));
    assert_eq!(server.send(small).await.status, 201);
    server.stop().await;
}

/// New connections evict idle ones, but never those with requests.
#[tokio::test(flavor = "multi_thread")]
async fn connections_without_requests_give_way_to_others() {
    let server = Server::start_with(|options| options.max_connections = Some(8)).await;
    let mut watch = server.watch("/api/v1/namespaces/default/configmaps?watch=1", &[]).await;
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(TcpStream::connect(server.address()).await.unwrap());
    }
    let client = server.client(Identity::Admin).await;
    let created =
        client.send("POST /api/v1/namespaces/default/configmaps\n\n{\"metadata\":{\"name\":\"a\"}}").await;
    assert_eq!(created.status, 201);
    assert_eq!(watch.event().await["type"], "ADDED");
    for mut stream in idle.drain(..80) {
        let mut answer = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().ok();
        assert!(answer.is_empty());
    }
    // Connections that all have requests are not evicted.
    let mut watches = vec![watch];
    for _ in 0..7 {
        let client = server.client(Identity::Admin).await;
        watches.push(client.watch("/api/v1/namespaces/default/secrets?watch=1", &[]).await);
    }
    let mut refused = TcpStream::connect(server.address()).await.unwrap();
    let mut answer = Vec::new();
    timeout(PATIENCE, refused.read_to_end(&mut answer)).await.unwrap().ok();
    assert!(answer.is_empty());
    drop(watches);
    server.stop().await;
}

/// The bodies of refused requests arrive slowly on all connections: another client is served nevertheless.
#[tokio::test(flavor = "multi_thread")]
async fn refused_requests_that_are_still_sent_give_way_to_others() {
    let server = Server::start_with(|options| options.max_connections = Some(9)).await;
    let head = "POST /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n";
    let mut sending = Vec::new();
    for _ in 0..8 {
        let mut stream = server.raw(Identity::Nobody).await;
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        sending.push(tokio::spawn(async move {
            while stream.write_all(b" ").await.is_ok() && stream.flush().await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }));
    }
    let refused = async || {
        let metrics = server.send("GET /metrics").await;
        let name = "apiserver_flowcontrol_dispatched_requests_total{flow_schema=\"global-default\"";
        let is_wanted = |line: &&str| line.starts_with(name);
        metrics.text().lines().filter(is_wanted).any(|line| line.rsplit_once(' ').unwrap().1 == "8")
    };
    let waiting = async {
        while !refused().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, waiting).await.unwrap();
    server.assert_lives().await;
    sending.iter().for_each(|task| task.abort());
    server.stop().await;
}

/// Clients without a user have closed the windows of their streams on all connections, which costs a kilobyte each: another
/// client is served nevertheless.
#[tokio::test(flavor = "multi_thread")]
async fn responses_that_strangers_do_not_read_give_way_to_others() {
    let server = Server::start_with(|options| options.max_connections = Some(8)).await;
    let mut strangers = Vec::new();
    for path in ["/livez", "/api/v1/pods?watch=1"].repeat(4) {
        let mut stranger = Http2::connect_as(Identity::Nobody, &server, 0).await;
        stranger.get(1, path).await;
        stranger.soon(&[HEADERS]).await.unwrap();
        strangers.push(stranger);
    }
    server.assert_lives().await;
    drop(strangers);
    server.stop().await;
}
