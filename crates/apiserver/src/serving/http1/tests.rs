use super::*;
use crate::serving::head_budget::DEFAULT_HEAD_MEMORY;
use futures_util::FutureExt;
use pintle_http1::head::{MAX_HEAD_BYTES, MAX_HEADERS};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

fn heads_of(stream: DuplexStream, requests: &Requests) -> RequestHeads<DuplexStream> {
    let budget = HeadBudget::new(DEFAULT_HEAD_MEMORY);
    RequestHeads::new(stream, false, requests.clone(), budget, ConnectionHandle::new(10))
}

/// The bytes that hyper gets from this input, sent in pieces, the refusal and the error.
async fn read(input: &[u8], piece: usize) -> (String, Option<(u64, Refusal)>, Option<String>) {
    let (mut client, server) = duplex(64);
    let requests = Requests::default();
    let mut heads = heads_of(server, &requests);
    let sent = input.to_vec();
    let sending = tokio::spawn(async move {
        for part in sent.chunks(piece) {
            if client.write_all(part).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
        drop(client);
    });
    let (mut out, mut error) = (Vec::new(), None);
    let mut buffer = [0; 512];
    loop {
        // A refused connection waits for hyper to end it.
        let is_refused = requests.0.refusal.get().is_some() && heads.ready.is_empty();
        if is_refused {
            break;
        }
        let read = tokio::time::timeout(std::time::Duration::from_secs(60), heads.read(&mut buffer));
        match read.await {
            Ok(Ok(0)) | Err(_) => break,
            Ok(Ok(read)) => out.extend_from_slice(&buffer[..read]),
            Ok(Err(failed)) => {
                error = Some(failed.to_string());
                break;
            }
        }
    }
    sending.abort();
    (String::from_utf8_lossy(&out).into_owned(), requests.0.refusal.get().copied(), error)
}

/// Checks that hyper gets the same bytes for every size of pieces.
async fn check(input: &str, passed: &str, refused: Option<(u64, Refusal)>) {
    for piece in [1, 2, 3, 7, 50, input.len()] {
        let expected = match refused {
            Some(_) => format!("{passed}{}", String::from_utf8_lossy(REFUSED)),
            None => passed.to_owned(),
        };
        let got = read(input.as_bytes(), piece.max(1)).await;
        assert_eq!(got, (expected, refused, None), "{input:?} by {piece}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_hyper_reads_go_on_as_they_are() {
    for input in [
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET /a%20b?c=%zz HTTP/1.1\nHost: x\n\n",
        "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: y\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n\r\n\r\nGET /b HTTP/1.1\r\nHost: y\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\nGET /b HTTP/1.1\r\nHost: y\r\n\r\n",
        "CONNECT a.example.com:443 HTTP/1.1\r\n\r\n",
        "CONNECT /a HTTP/1.1\r\nHost: x\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET https://a.example.com/b HTTP/1.1\r\nHost:\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\nab",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0anything",
    ] {
        check(input, input, None).await;
    }
}

#[tokio::test(start_paused = true)]
async fn heads_that_hyper_reads_otherwise_than_go_are_rewritten() {
    for (input, expected) in [
        ("GET /a HTTP/1.2\r\nHost: x\r\n\r\nrest", "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a%23b HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("GET /<\u{e9}>?{\"\"} HTTP/1.0\r\n\r\n", "GET /%3C%C3%A9%3E?%7B%22%22%7D HTTP/1.0\r\n\r\n"),
        (
            "GET / HTTP/1.1\r\nHost: x\r\nX-A: b\r\n  c\r\n\td \r\nX-B: e\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nX-A: b c d\r\nX-B: e\r\n\r\n",
        ),
        (
            "POST / HTTP/1.1\nHost: x\nContent-Length: 3\nTransfer-Encoding: Chunked\n\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length:  2 \r\n\r\nab",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab",
        ),
        ("GET / HTTP/1.1\r\nHost:\r\n x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        (
            "POST / HTTP/1.1\r\nHost: x\r\nExpect: a, 100-Continue\r\nContent-Length: 2\r\n\r\nab",
            "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab",
        ),
        (
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nab",
            "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nab",
        ),
        (
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\naGET /b HTTP/1.1\r\nHost: x\r\n\r\n",
        ),
    ] {
        check(input, expected, None).await;
    }
}

#[tokio::test(start_paused = true)]
async fn heads_that_go_refuses_are_refused_after_the_requests_before_them() {
    use Refusal::*;
    let bad = BadRequest;
    for (input, refusal) in [
        ("nonsense\r\n\r\n", Malformed),
        ("nonsense\r\n", Malformed),
        ("\r\n\r\n", Malformed),
        ("\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", Malformed),
        ("GET /healthz\r\n\r\n", Malformed),
        ("GET / HTTP/1.1 \r\nHost: x\r\n\r\n", Malformed),
        ("GET  HTTP/1.1\r\nHost: x\r\n\r\n", Malformed),
        ("G\u{e9}T / HTTP/1.1\r\nHost: x\r\n\r\n", Malformed),
        ("GET healthz HTTP/1.1\r\nHost: x\r\n\r\n", Malformed),
        ("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", Malformed),
        ("GET /%1 HTTP/1.1\r\nHost: x\r\n\r\n", Malformed),
        ("GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n", Malformed),
        ("GET / HTTP/11\r\nHost: x\r\n\r\n", Malformed),
        ("GET / HTTP/1.1\r\n Host: x\r\n\r\n", Malformed),
        ("GET / HTTP/1.1\r\nHost: x\r\nNonsense\r\n\r\n", Malformed),
        ("GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n", Malformed),
        ("GET / HTTP/1.1\r\nHost: x\r\nA\tB: y\r\n\r\n", Malformed),
        ("GET / HTTP/1.1\r\nHost: x\r\nA: \x01\r\n\r\n", Malformed),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", Malformed),
        ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", Malformed),
        ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -3\r\n\r\n", Malformed),
        ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +3\r\n\r\n", Malformed),
        ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n", Malformed),
        ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775808\r\n\r\n", Malformed),
        ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n 2\r\n\r\n", Malformed),
        ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", TransferEncoding),
        ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", TransferEncoding),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            TransferEncoding,
        ),
        (
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: A, content-length\r\n\r\n",
            Malformed,
        ),
        ("GET / HTTP/2.0\r\nHost: x\r\n\r\n", Version),
        ("GET / HTTP/0.9\r\n\r\n", Version),
        ("GET / HTTP/1.1\r\n\r\n", bad("missing required Host header")),
        ("GET / HTTP/1.1\r\nHost: ../../etc\r\n\r\n", bad("malformed Host header")),
        ("GET / HTTP/1.0\r\nHost: a b\r\n\r\n", bad("malformed Host header")),
        ("GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", bad("malformed Host header")),
        ("GET / HTTP/1.1\r\nHost: x\r\nBad Header: x\r\n\r\n", bad("invalid header name")),
        ("GET / HTTP/1.1\r\nHost: x\r\nBad : x\r\n\r\n", bad("invalid header name")),
        ("GET / HTTP/1.1\r\nHost: x\r\nExpect: nothing\r\n\r\n", Expectation),
    ] {
        check(input, "", Some((0, refusal))).await;
        let good = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        check(&format!("{good}{good}{input}"), &good.repeat(2), Some((2, refusal))).await;
    }
}

#[tokio::test(start_paused = true)]
async fn heads_have_their_bounds() {
    let head = |value: usize| format!("GET / HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n", "a".repeat(value));
    let largest = MAX_HEAD_BYTES - head(0).len();
    for (input, is_read) in [
        (head(100_000), true),
        (head(largest), true),
        (head(largest + 1), false),
        (head(2 * MAX_HEAD_BYTES), false),
        (format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(MAX_HEADERS - 1)), true),
        (format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(MAX_HEADERS)), false),
        (format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(60_000)), true),
        (format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(70_000)), false),
        (format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "<".repeat(30_000)), false),
    ] {
        let (passed, refused, error) = read(input.as_bytes(), 5000).await;
        assert_eq!(error, None);
        let expected = (!is_read).then_some((0, Refusal::HeadersTooLarge));
        assert_eq!((passed == input, refused), (is_read, expected), "{} bytes", input.len());
    }
}

/// The output does not depend on how the input is split, for any input.
#[tokio::test(start_paused = true)]
async fn garbage_is_read_the_same_in_any_pieces() {
    const PARTS: [&[u8]; 24] = [
        b"GET / HTTP/1.1",
        b"POST /a HTTP/1.0",
        b"PRI * HTTP/2.0",
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"\t",
        b":",
        b"Host: x",
        b"Host: x\r\n\r\n",
        b"Content-Length: 3",
        b"Content-Length: 0x",
        b"Transfer-Encoding: chunked",
        b"Upgrade: h2c",
        b"Connection: upgrade",
        b"3\r\nabc\r\n",
        b"0\r\n\r\n",
        b"abc",
        b"\0\xff",
        b"%",
        b"Expect: 100-continue",
        b"Trailer: a",
        b"X: y\r\n z",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    for _ in 0..10_000 {
        let mut input = if random(2) == 0 { b"GET / HTTP/1.1\r\nHost: x\r\n".to_vec() } else { Vec::new() };
        for _ in 0..random(12) {
            input.extend_from_slice(PARTS[random(PARTS.len())]);
        }
        let mut whole = read(&input, input.len().max(1)).await;
        let mut pieces = read(&input, 1 + random(5)).await;
        if whole.2.is_some() {
            // How much of a broken body passes before the error makes no difference.
            (whole.0, pieces.0) = (String::new(), String::new());
        }
        assert_eq!(whole, pieces, "{}", String::from_utf8_lossy(&input));
        if !input.starts_with(PREFACE) {
            hyper_agrees(&input).await;
        }
    }
}

/// Hyper accepts the bytes that pass, and finds at most the counted requests in them: both agree where a request ends.
async fn hyper_agrees(input: &[u8]) {
    let (mut client, server) = duplex(64 << 10);
    let requests = Requests::default();
    let mut heads = heads_of(server, &requests);
    client.write_all(input).await.unwrap();
    client.shutdown().await.unwrap();
    let served = AtomicU64::new(0);
    let service = hyper::service::service_fn(async |request: hyper::Request<hyper::body::Incoming>| {
        served.fetch_add(1, Ordering::Relaxed);
        // The body may end early.
        let _ = http_body_util::BodyExt::collect(request.into_body()).await;
        requests.answered(false);
        Ok::<_, std::convert::Infallible>(hyper::Response::new(String::new()))
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(hyper_util::rt::TokioIo::new(&mut heads), service);
    let ended = tokio::time::timeout(Duration::from_secs(60), connection).await;
    let text = String::from_utf8_lossy(input);
    if let Ok(Err(error)) = ended {
        assert!(!error.is_parse(), "{error}: {text:?}");
    }
    let refused = u64::from(requests.0.refusal.get().is_some());
    assert!(served.into_inner() <= heads.heads + refused, "{text:?}");
}

#[tokio::test(start_paused = true)]
async fn a_head_has_its_time_from_its_first_byte_on() {
    let post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na";
    for beginning in ["", post, &format!("{post}\r\n")] {
        let (mut client, server) = duplex(1024);
        let mut heads = heads_of(server, &Requests::default());
        client.write_all(beginning.as_bytes()).await.unwrap();
        let mut buffer = [0; 1024];
        if !beginning.is_empty() {
            assert_eq!(heads.read(&mut buffer).await.unwrap(), post.len());
        }
        // `RequestHeads` sets no time limit on an idle connection.
        let idle = tokio::time::timeout(HEADER_READ_TIMEOUT * 3, heads.read(&mut buffer)).await;
        assert!(idle.is_err());
        let begun = tokio::time::Instant::now();
        let slow = async {
            for byte in b"GET / HTTP/1.1\r\nHost: x\r\nX: 0123456789012345678901234567890123456789" {
                client.write_all(&[*byte]).await.unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let read = tokio::select! {
            read = heads.read(&mut buffer) => read,
            () = slow => panic!("the head was not cut off"),
        };
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), HEADER_READ_TIMEOUT);
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_body_has_the_message_of_go() {
    let head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (passed, refused, error) = read(format!("{head}1\r\na\r\nzz\r\n\r\n").as_bytes(), 1000).await;
    assert!(passed.starts_with(head), "{passed}");
    assert_eq!((refused, error.as_deref()), (None, Some("invalid byte in chunk length")));
}

/// The heads that arrived first give way to others.
#[tokio::test(start_paused = true)]
async fn large_heads_share_their_memory() {
    let budget = HeadBudget::new(1 << 20);
    let head = format!("GET / HTTP/1.1\r\nHost: x\r\nx: {}", "y".repeat(400_000));
    let begin = async || {
        let (mut client, server) = duplex(1 << 20);
        let (requests, connection) = (Requests::default(), ConnectionHandle::new(10));
        let mut heads =
            RequestHeads::new(server, false, requests.clone(), budget.clone(), connection.clone());
        client.write_all(head.as_bytes()).await.unwrap();
        let mut buffer = vec![0; 1 << 20];
        let read = tokio::time::timeout(std::time::Duration::from_secs(1), heads.read(&mut buffer)).await;
        assert!(read.is_err(), "the head did not end");
        (client, heads, requests, connection)
    };
    let is_severed = |connection: &ConnectionHandle| connection.severed().now_or_never().is_some();
    let (_first_client, first, _, first_connection) = begin().await;
    let (mut client, mut second, requests, second_connection) = begin().await;
    assert!(!is_severed(&first_connection));
    let (_third_client, third, _, third_connection) = begin().await;
    assert!(is_severed(&first_connection));
    assert!(!is_severed(&second_connection) && !is_severed(&third_connection));
    drop((first, third));
    assert!(budget.used() >= head.len() && !requests.ends_connection());
    client.write_all(b"\r\n\r\n").await.unwrap();
    let mut passed = vec![0; head.len() + 4];
    second.read_exact(&mut passed).await.unwrap();
    assert!(passed.ends_with(b"y\r\n\r\n"));
    assert!(requests.ends_connection());
    assert_eq!(budget.used(), 0);
}

/// So do header blocks of HTTP/2, which have the time of heads.
#[tokio::test(start_paused = true)]
async fn header_blocks_without_an_end_are_charged_and_cut_off() {
    const HEADERS: [u8; 9] = [0, 0x40, 0, 1, 0, 0, 0, 0, 1];
    let budget = HeadBudget::new(8 << 20);
    for is_http2 in [true, false] {
        let (mut client, server) = duplex(1 << 20);
        let connection = ConnectionHandle::new(10);
        let mut heads = RequestHeads::new(server, is_http2, Requests::default(), budget.clone(), connection);
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        client.write_all(&HEADERS).await.unwrap();
        client.write_all(&[0; 0x4000]).await.unwrap();
        let mut passed = vec![0; 24];
        heads.read_exact(&mut passed).await.unwrap();
        let begun = tokio::time::Instant::now();
        let waiting = tokio::time::timeout(Duration::from_secs(1), heads.read(&mut passed)).await;
        assert!(waiting.is_err());
        // Sixteen kilobytes of references to headers stand for megabytes.
        assert!(budget.used() > 2 << 20);
        assert_eq!(heads.read(&mut passed).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), HEADER_READ_TIMEOUT);
        drop(heads);
        assert_eq!(budget.used(), 0);
    }
}

/// Each block has its own time, although bytes of the next one are held when it ends.
#[tokio::test(start_paused = true)]
async fn blocks_that_overlap_what_is_read_have_their_own_time() {
    let (mut client, server) = duplex(1 << 20);
    let connection = ConnectionHandle::new(10);
    let mut heads =
        RequestHeads::new(server, true, Requests::default(), HeadBudget::new(8 << 20), connection);
    let mut passed = vec![0; 24];
    client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    heads.read_exact(&mut passed).await.unwrap();
    let block = |stream: u8| [0, 0, 3, 1, 5, 0, 0, 0, stream, 0x82, 0x87, 0x84];
    client.write_all(&block(1)[..1]).await.unwrap();
    for stream in [1, 3, 5, 7, 9] {
        let waiting = tokio::time::timeout(HEADER_READ_TIMEOUT / 2, heads.read(&mut passed)).await;
        assert!(waiting.is_err());
        let (block, next) = (block(stream), block(stream + 2));
        client.write_all(&[&block[1..], &next[..1]].concat()).await.unwrap();
        heads.read_exact(&mut passed[..12]).await.unwrap();
        assert_eq!(passed[..12], block);
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_http_2_is_acknowledged_between_frames_in_place_of_the_client() {
    let begin = [PREFACE, b"\r\nSM\r\n\r\n".as_slice()].concat();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let data_head = [0, 0, 4, 0, 0, 0, 0, 0, 1];
    let block_head = [0, 0, 9, 1, 4, 0, 0, 0, 3];
    for (sent, later, expected) in [
        (begin.as_slice(), &b""[..], [&begin, SHUTDOWN_ACK].concat()),
        (&[&begin[..], &settings].concat(), b"", [&begin, &settings[..], SHUTDOWN_ACK].concat()),
        // A frame that has begun goes first, and a block of headers that has not passed goes last.
        (
            &[&begin[..], &data_head, b"ab"].concat(),
            b"cd",
            [&begin, &data_head[..], b"abcd", SHUTDOWN_ACK].concat(),
        ),
        (&[&begin[..], &block_head].concat(), b"", [&begin, SHUTDOWN_ACK].concat()),
        (&[&begin[..], SHUTDOWN_ACK].concat(), b"", [&begin, SHUTDOWN_ACK].concat()),
        (&begin[..PREFACE.len()], b"", PREFACE.to_vec()),
    ] {
        let (mut client, server) = duplex(1024);
        let requests = Requests::default();
        let mut heads = heads_of(server, &requests);
        let mut read = Vec::new();
        client.write_all(sent).await.unwrap();
        while tokio::time::timeout(Duration::from_secs(1), heads.read_buf(&mut read)).await.is_ok() {}
        requests.acknowledge_end();
        client.write_all(later).await.unwrap();
        while tokio::time::timeout(Duration::from_secs(1), heads.read_buf(&mut read)).await.is_ok() {}
        assert_eq!(read.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }
}

/// The library would read it as HTTP/1, whose heads would be those of no inspection.
#[tokio::test]
async fn http_1_where_http_2_was_agreed_on_is_refused() {
    let (mut client, server) = duplex(1 << 20);
    let connection = ConnectionHandle::new(10);
    let budget = HeadBudget::new(8 << 20);
    let mut heads = RequestHeads::new(server, true, Requests::default(), budget, connection);
    client.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    let error = heads.read(&mut [0; 100]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

const UPGRADE: &str =
    "GET /a HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn bytes_after_a_request_to_upgrade_wait_for_the_response() {
    let (good, odd) = ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a HTTP/1.2\r\nHost: x\r\n\r\n");
    let body = UPGRADE.replace("\r\n\r\n", "\r\nContent-Length: 3\r\n\r\nabc");
    for (upgrade, is_upgraded, expected) in [
        (UPGRADE, true, odd),
        (UPGRADE, false, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"),
        (&body, true, odd),
        (&body, false, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"),
    ] {
        let (mut client, server) = duplex(1024);
        let requests = Requests::default();
        let mut heads = heads_of(server, &requests);
        client.write_all(format!("{good}{upgrade}{odd}").as_bytes()).await.unwrap();
        let mut passed = vec![0; good.len() + upgrade.len()];
        heads.read_exact(&mut passed).await.unwrap();
        assert_eq!(String::from_utf8(passed).unwrap(), format!("{good}{upgrade}"));
        // The response to the request before tells nothing.
        requests.answered(false);
        let mut buffer = [0; 1024];
        let waiting = tokio::time::timeout(HEADER_READ_TIMEOUT * 2, heads.read(&mut buffer)).await;
        assert!(waiting.is_err());
        requests.answered(is_upgraded);
        let mut passed = vec![0; expected.len()];
        heads.read_exact(&mut passed).await.unwrap();
        assert_eq!(String::from_utf8(passed).unwrap(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn hyper_gets_the_request_behind_one_that_was_not_upgraded() {
    let odd = "GET /a HTTP/1.2\r\nHost: x\r\n\r\n";
    let (mut client, server) = duplex(64 << 10);
    let requests = Requests::default();
    let heads = heads_of(server, &requests);
    client.write_all(format!("{UPGRADE}{odd}{UPGRADE}{odd}").as_bytes()).await.unwrap();
    let service = hyper::service::service_fn(async |_: hyper::Request<hyper::body::Incoming>| {
        tokio::task::yield_now().await;
        requests.answered(false);
        Ok::<_, std::convert::Infallible>(hyper::Response::new(String::new()))
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .serve_connection(hyper_util::rt::TokioIo::new(heads), service);
    let answers = async {
        let mut answers = String::new();
        while answers.matches("HTTP/1.1 200").count() < 4 {
            let mut buffer = [0; 1024];
            let read = client.read(&mut buffer).await.unwrap();
            assert_ne!(read, 0, "{answers}");
            answers.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
    };
    tokio::select! {
        ended = connection => panic!("{ended:?}"),
        answered = tokio::time::timeout(Duration::from_secs(60), answers) => answered.unwrap(),
    }
}

#[tokio::test(start_paused = true)]
async fn few_bytes_are_held_while_an_upgrade_is_undecided() {
    let (mut client, server) = duplex(1024);
    let requests = Requests::default();
    let mut heads = heads_of(server, &requests);
    client.write_all(UPGRADE.as_bytes()).await.unwrap();
    let mut passed = vec![0; UPGRADE.len()];
    heads.read_exact(&mut passed).await.unwrap();
    let mut flood = async || while client.write_all(&[0; 1024]).await.is_ok() {};
    let reading = async {
        let mut buffer = [0; 1024];
        tokio::select! {
            _ = heads.read(&mut buffer) => panic!("nothing is decided"),
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
        heads.held.len()
    };
    let held = tokio::select! {
        () = flood() => panic!("all was read"),
        held = reading => held,
    };
    assert!((1..=4096).contains(&held), "{held}");
    // The end of the stream is seen.
    let (mut client, server) = duplex(1024);
    let mut heads = heads_of(server, &Requests::default());
    client.write_all(UPGRADE.as_bytes()).await.unwrap();
    heads.read_exact(&mut passed).await.unwrap();
    drop(client);
    assert_eq!(heads.read(&mut [0; 10]).await.unwrap(), 0);
}
