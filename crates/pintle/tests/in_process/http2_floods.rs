//! Tests floods of cheap HTTP/2 frames: the server keeps none of them, and serves other clients meanwhile.

use crate::{
    alone::is_alone,
    harness::{Identity, PATIENCE, Server},
    http2::{
        ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, Http2, PING, PRIORITY, RST_STREAM,
        SETTINGS, WINDOW_UPDATE, frame, get, literal, settings,
    },
};
use pintle_counting_allocator::in_use;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::{Instant, timeout},
};

/// The number of frames of a flood, unless the server closes the connection first.
const FRAMES: usize = 100_000;
/// The number of frames of a flood whose responses are not read: more than the system's buffers hold.
const UNREAD_FRAMES: usize = 500_000;
/// The number of frames per write.
const BATCH: usize = 500;
/// The memory that a flood may take, in bytes: buffers, and little for each of [`FRAMES`].
const MEMORY: usize = 6 << 20;

/// The most memory in use while an attack runs beyond that before it, in bytes. It is that of this process, which has
/// only this server and its clients ([`is_alone`]).
async fn memory_of<T>(attack: impl Future<Output = T>) -> (T, usize) {
    let before = in_use();
    let mut most = before;
    let mut attack = std::pin::pin!(attack);
    loop {
        tokio::select! {
            result = &mut attack => return (result, most.max(in_use()).saturating_sub(before)),
            () = tokio::time::sleep(Duration::from_millis(1)) => most = most.max(in_use()),
        }
    }
}

/// The fate of a flooded connection.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The server reads all frames, or stops reading until its responses are read.
    Read,
    /// The server closes the connection.
    Closed,
}

/// Sends frames, and reads the responses or not.
async fn flood(server: &Server, begin: &[u8], next: impl FnMut(usize) -> Vec<u8>, reads: bool) -> End {
    let mut client = Http2::connect(server, 0).await;
    client.send(begin).await.unwrap();
    let Http2 { mut reader, mut writer } = client;
    if !reads {
        return match write(&mut writer, next, UNREAD_FRAMES, Duration::from_millis(500)).await {
            Ok(()) => End::Read,
            Err(_) => End::Closed,
        };
    }
    let read = async {
        let mut buffer = vec![0; 1 << 16];
        while reader.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
    };
    let writing = async {
        write(&mut writer, next, FRAMES, PATIENCE).await.ok();
        // The last frames may be the ones that close the connection.
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    tokio::select! {
        biased;
        () = read => End::Closed,
        () = writing => End::Read,
    }
}

/// Writes frames while the server accepts some in time. An error when the connection ends.
async fn write(
    writer: &mut (impl AsyncWrite + Unpin),
    mut next: impl FnMut(usize) -> Vec<u8>,
    frames: usize,
    patience: Duration,
) -> std::io::Result<()> {
    for sent in (0..frames).step_by(BATCH) {
        let batch: Vec<u8> = (sent..sent + BATCH).flat_map(&mut next).collect();
        let written = timeout(patience, async {
            writer.write_all(&batch).await?;
            writer.flush().await
        });
        match written.await {
            Ok(written) => written?,
            Err(_) => break,
        }
    }
    Ok(())
}

/// Runs an attack while a well-behaved client is served promptly. The client has a task of its own, whose time is not that
/// of the attack.
async fn serves_others<T>(server: &Server, attack: impl Future<Output = T>) -> T {
    let client = server.client(Identity::Admin).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let stops = Arc::clone(&is_over);
    let asking = tokio::spawn(async move {
        let mut slowest = Duration::ZERO;
        while !stops.load(Ordering::Relaxed) {
            let asked = Instant::now();
            let answer = client.send("GET /api/v1/namespaces/default").await;
            assert_eq!(answer.status, 200);
            slowest = slowest.max(asked.elapsed());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        slowest
    });
    let result = attack.await;
    is_over.store(true, Ordering::Relaxed);
    let slowest = asking.await.unwrap();
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    result
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_of_frames_take_no_memory_and_nobody_elses_turn() {
    if !is_alone("http2_floods::floods_of_frames_take_no_memory_and_nobody_elses_turn") {
        return;
    }
    let server = Server::start().await;
    let open = frame(HEADERS, END_HEADERS, 1, &post());
    let windows = |index: usize| settings(&[(4, if index.is_multiple_of(2) { 0 } else { 1 << 30 })]);
    let table = |index: usize| settings(&[(1, if index.is_multiple_of(2) { 0 } else { u32::MAX })]);
    let stream = |index: usize| u32::try_from(2 * (index % 1_000_000) + 1).unwrap();
    type Next = Box<dyn FnMut(usize) -> Vec<u8>>;
    let floods: Vec<(&str, Vec<u8>, Next, End)> = vec![
        ("pings", vec![], Box::new(|_| frame(PING, 0, 0, &[7; 8])), End::Read),
        ("answers to pings", vec![], Box::new(|_| frame(PING, ACK, 0, &[7; 8])), End::Read),
        ("settings of windows", vec![], Box::new(windows), End::Read),
        ("settings of tables", vec![], Box::new(table), End::Read),
        (
            "windows of the connection",
            vec![],
            Box::new(|_| frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes())),
            End::Read,
        ),
        (
            "windows of a stream",
            open.clone(),
            Box::new(|_| frame(WINDOW_UPDATE, 0, 1, &1_u32.to_be_bytes())),
            End::Read,
        ),
        (
            "priorities",
            vec![],
            Box::new(move |index| frame(PRIORITY, 0, stream(index), &[0, 0, 0, 0, 16])),
            End::Read,
        ),
        ("frames of no kind", vec![], Box::new(|_| frame(0xee, 0, 0, &[0; 16])), End::Read),
        ("empty data", open.clone(), Box::new(|_| frame(DATA, 0, 1, &[])), End::Closed),
        ("data of a byte", open.clone(), Box::new(|_| frame(DATA, 0, 1, b" ")), End::Closed),
        (
            "heads that never end",
            frame(HEADERS, END_STREAM, 1, &get("/version")),
            Box::new(|_| frame(CONTINUATION, 0, 1, &[])),
            End::Closed,
        ),
        (
            "streams that are not allowed",
            vec![],
            Box::new(move |index| frame(HEADERS, END_HEADERS, stream(index), &post())),
            End::Closed,
        ),
        (
            // <https://nvd.nist.gov/vuln/detail/CVE-2025-8671>
            "streams that the server has to reset",
            vec![],
            Box::new(move |index| {
                let head = frame(HEADERS, END_HEADERS, stream(index), &post());
                [head, frame(WINDOW_UPDATE, 0, stream(index), &[0; 4])].concat()
            }),
            End::Closed,
        ),
        (
            "headers without name and value",
            vec![],
            Box::new(move |index| {
                let empty: Vec<u8> = std::iter::repeat_n([0, 0, 0], 100).flatten().collect();
                frame(HEADERS, END_HEADERS | END_STREAM, stream(index), &[get("/livez"), empty].concat())
            }),
            End::Closed,
        ),
    ];
    for (what, begin, mut next, expected) in floods {
        for reads in [true, false] {
            let flood = flood(&server, &begin, &mut next, reads);
            let (end, grown) = memory_of(serves_others(&server, flood)).await;
            println!("{what}: {grown} bytes");
            assert!(grown < MEMORY, "{what}: {grown} bytes");
            assert_eq!(end, expected, "{what}, reading: {reads}");
        }
    }
    server.assert_lives().await;
    server.stop().await;
}

/// The header block of a POST with a body.
fn post() -> Vec<u8> {
    let mut block = get("/api/v1/namespaces/default/configmaps");
    block[0] = 0x83;
    block.extend(literal("content-type", "application/json"));
    block
}

/// A connection whose header table holds a header of four kilobytes at index 62.
async fn with_large_header(server: &Server) -> Http2 {
    let mut client = Http2::connect(server, 1 << 20).await;
    let mut entry = literal("x-large", &"y".repeat(3900));
    // Adds the header to the table.
    entry[0] = 0x40;
    let head = [get("/livez"), entry].concat();
    client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &head)).await.unwrap();
    assert_eq!(client.soon(&[HEADERS]).await.unwrap().stream, 1);
    client
}

/// A header of four kilobytes is sent once and referenced thousands of times
/// (<https://nvd.nist.gov/vuln/detail/CVE-2016-6581>).
#[tokio::test(flavor = "multi_thread")]
async fn headers_that_are_named_again_and_again_are_counted_each_time() {
    if !is_alone("http2_floods::headers_that_are_named_again_and_again_are_counted_each_time") {
        return;
    }
    let server = Server::start().await;
    let mut client = with_large_header(&server).await;
    let named = |times: usize| {
        frame(HEADERS, END_HEADERS | END_STREAM, 3, &{ [get("/livez"), vec![0x80 | 62; times]].concat() })
    };
    let (end, grown) = memory_of(async {
        client.send(&named(16_000)).await.unwrap();
        // More than four times the limit cannot be a mistake: the connection is closed.
        client.soon(&[GOAWAY]).await.unwrap()
    })
    .await;
    assert_eq!(end.code(), 11, "ENHANCE_YOUR_CALM");
    assert!(grown < MEMORY, "{grown} bytes");
    let mut client = with_large_header(&server).await;
    // Go's limit is a megabyte; a larger head gets 431.
    client.send(&named(500)).await.unwrap();
    let head = client.soon(&[HEADERS, RST_STREAM]).await.unwrap();
    // The status 431, Huffman-encoded, with an indexed name.
    assert_eq!(head.payload, [0x48, 0x83, 0x69, 0x90, 0xff]);
    // The connection is usable.
    client.get(5, "/version").await;
    assert_eq!(client.soon(&[HEADERS]).await.unwrap().payload[0], 0x88);
    drop(client);
    server.assert_lives().await;
    server.stop().await;
}

/// Go's server accepts a megabyte of headers, with 32 bytes added for each.
#[tokio::test(flavor = "multi_thread")]
async fn headers_may_be_as_large_as_go_has_it() {
    let server = Server::start().await;
    let client = server.client(Identity::Admin).await;
    let value = "y".repeat(10_000);
    for (count, status) in [(100, 200), (110, 431)] {
        let names: Vec<String> = (0..count).map(|index| format!("x-header-{index}")).collect();
        let headers: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), value.as_str())).collect();
        let response = client.begin("GET", "/version", &headers, crate::harness::whole("")).await.unwrap();
        assert_eq!(response.status(), status, "{count}");
    }
    server.stop().await;
}

/// Whether the server closes the connection soon.
async fn is_closed(client: &mut Http2) -> bool {
    let mut buffer = vec![0; 1 << 16];
    let end = async { while client.reader.read(&mut buffer).await.is_ok_and(|read| read > 0) {} };
    timeout(PATIENCE, end).await.is_ok()
}

/// Each byte of the blocks names a header, so that each takes a hundred times its bytes.
#[tokio::test(flavor = "multi_thread")]
async fn header_blocks_that_never_end_share_their_memory() {
    if !is_alone("http2_floods::header_blocks_that_never_end_share_their_memory") {
        return;
    }
    /// `accept-encoding: gzip, deflate` in the table of all connections.
    const NAMED: u8 = 0x80 | 16;
    let server = Server::start().await;
    let block = [get("/livez"), vec![NAMED; 16_000]].concat();
    let begun = async {
        let mut clients = Vec::new();
        for _ in 0..200 {
            let mut client = Http2::connect(&server, 1 << 20).await;
            // The server may close it at once.
            client.send(&frame(HEADERS, END_STREAM, 1, &block)).await.ok();
            clients.push(client);
        }
        assert!(is_closed(&mut clients[0]).await, "the oldest gives way");
        server.assert_lives().await;
        clients
    };
    let (mut clients, taken) = memory_of(begun).await;
    println!("{taken} bytes");
    // Each of the connections has buffers of its own.
    assert!(taken < (64 << 20) + 200 * (64 << 10), "{taken} bytes");
    // A block that ends is no burden.
    let mut client = clients.pop().unwrap();
    client.send(&frame(CONTINUATION, END_HEADERS, 1, &[])).await.unwrap();
    assert_eq!(client.soon(&[HEADERS]).await.unwrap().stream, 1);
    drop((client, clients));
    server.stop().await;
}

/// The bytes of bodies that nobody has read yet are memory that no budget counts.
#[tokio::test(flavor = "multi_thread")]
async fn few_bytes_of_bodies_may_be_sent_before_they_are_read() {
    const INITIAL_WINDOW_SIZE: u16 = 4;
    /// The window of a connection before it is enlarged (<https://www.rfc-editor.org/rfc/rfc9113#section-6.9.2>).
    const FIRST_WINDOW: u32 = 65_535;
    let server = Server::start().await;
    let mut client = Http2::connect(&server, 0).await;
    let settings = client.soon(&[SETTINGS]).await.unwrap().payload;
    let of_streams = settings.chunks(6).find(|setting| setting[..2] == INITIAL_WINDOW_SIZE.to_be_bytes());
    assert_eq!(of_streams.unwrap()[2..], (256_u32 << 10).to_be_bytes());
    let enlarged = client.soon(&[WINDOW_UPDATE]).await.unwrap();
    assert_eq!(
        (enlarged.stream, enlarged.payload),
        (0, ((1_u32 << 20) - FIRST_WINDOW).to_be_bytes().to_vec())
    );
    drop(client);
    server.stop().await;
}

/// The end of a connection does not depend on the client's answer to the ping behind the GOAWAY.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_ignores_the_end_of_its_connection_is_served_no_longer() {
    let server = Server::start_with(|options| options.serving.goaway_chance = 0.02).await;
    const LAST_STREAM: u32 = (1 << 31) - 1;
    let mut client = Http2::connect(&server, 1 << 20).await;
    client.send(&frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes())).await.unwrap();
    // Streams go on behind the GOAWAY, without answers to pings, until the connection ends.
    let mut streams = (1_u32..).step_by(2);
    let ended = async {
        let mut last_streams = Vec::new();
        loop {
            let stream = streams.next().unwrap();
            // The connection may end meanwhile, which the next frame tells.
            let request = frame(HEADERS, END_STREAM | END_HEADERS, stream, &get("/version"));
            drop(client.send(&request).await);
            loop {
                match client.frame().await {
                    Err(_) => return (last_streams, stream),
                    Ok(frame) if frame.kind == GOAWAY => {
                        last_streams.push(u32::from_be_bytes(frame.payload[..4].try_into().unwrap()));
                    }
                    Ok(frame) if frame.kind == DATA && frame.flags & END_STREAM != 0 => break,
                    Ok(_) => {}
                }
            }
        }
    };
    let (last_streams, stream) = timeout(PATIENCE, ended).await.unwrap();
    assert!(matches!(*last_streams, [LAST_STREAM, last] if last + 2 == stream), "{last_streams:?} {stream}");
    server.stop().await;
}
