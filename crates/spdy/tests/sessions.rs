//! Sessions against each other, and against peers that break the protocol.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

use futures_util::future::join_all;
use pintle_spdy::{Headers, MAX_STREAMS, OpenError, ReadError, Session, SessionEnd, Stream};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, duplex},
    sync::mpsc,
    time::timeout,
};

/// The size of a connection's buffer.
const BUFFER: usize = 4 << 10;

fn pair() -> (Session, Session, mpsc::Receiver<Stream>) {
    let (near, far) = duplex(BUFFER);
    let (server, streams) = Session::server(far);
    (Session::client(near, None), server, streams)
}

fn named(name: &str) -> Headers {
    [("StreamType", name)].into_iter().collect()
}

/// A frame of control.
fn control(kind: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = [&0x8003_u16.to_be_bytes()[..], &kind.to_be_bytes(), &[flags]].concat();
    frame.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    frame.extend_from_slice(payload);
    frame
}

/// A new stream with no headers, from a session that has sent none before.
fn open(stream: u32, is_first: bool) -> Vec<u8> {
    let mut payload = [&stream.to_be_bytes()[..], &[0; 6]].concat();
    if is_first {
        payload.extend_from_slice(b"\x78\xbb\xe3\xc6\xa7\xc2");
    }
    payload.extend_from_slice(b"\0\x04\0\xfb\xff\0\0\0\0\0\0\0\xff\xff");
    control(1, 0, &payload)
}

fn data(stream: u32, flags: u8, bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u32).to_be_bytes();
    [&stream.to_be_bytes()[..], &[flags], &length[1..], bytes].concat()
}

#[tokio::test]
async fn data_pass_in_both_directions_and_end_one_by_one() {
    let (client, _server, mut streams) = pair();
    let echo = tokio::spawn(async move {
        let stream = streams.recv().await.unwrap();
        assert_eq!(stream.headers().get("streamtype"), Some("stdin"));
        stream.accept().await.unwrap();
        let (mut reader, writer) = stream.split();
        while let Some(bytes) = reader.next().await.unwrap() {
            writer.write(&bytes).await.unwrap();
        }
        writer.write(b"end").await.unwrap();
        writer.finish().await.unwrap();
        // It stays until the peer is done.
        streams.recv().await
    });
    let (mut reader, writer) = client.open(&named("stdin")).await.unwrap().split();
    let sent: Vec<u8> = (0..300_000_u32).map(|number| number as u8).collect();
    let copy = sent.clone();
    let writing = tokio::spawn(async move {
        writer.write(&copy).await.unwrap();
        writer.finish().await.unwrap();
        assert!(writer.write(b"more").await.is_err());
        writer
    });
    let mut received = Vec::new();
    while let Some(bytes) = reader.next().await.unwrap() {
        received.extend_from_slice(&bytes);
    }
    assert_eq!(received, [&sent[..], b"end"].concat());
    writing.await.unwrap();
    client.close().await;
    assert!(echo.await.unwrap().is_none());
}

#[tokio::test]
async fn a_stream_without_users_is_reset_and_a_refused_one_is_an_error() {
    let (client, _server, mut streams) = pair();
    let refused = tokio::spawn({
        let client = client.clone();
        async move { client.open(&named("a")).await.map(drop) }
    });
    drop(streams.recv().await.unwrap());
    assert_eq!(refused.await.unwrap(), Err(OpenError::Reset));
    let headers = named("b");
    let (stream, other) = tokio::join!(client.open(&headers), async {
        let other = streams.recv().await.unwrap();
        other.accept().await.unwrap();
        other
    });
    let (reader, writer) = other.split();
    writer.write(b"before").await.unwrap();
    let (mut mine, _writer) = stream.unwrap().split();
    drop((reader, writer));
    assert_eq!(&mine.next().await.unwrap().unwrap()[..], b"before");
    assert_eq!(mine.next().await, Err(ReadError::Reset));
}

#[tokio::test]
async fn the_streams_end_with_the_session() {
    for closes in [true, false] {
        let (client, server, mut streams) = pair();
        let headers = named("a");
        let (stream, other) = tokio::join!(client.open(&headers), async {
            let other = streams.recv().await.unwrap();
            other.accept().await.unwrap();
            other
        });
        let (mut reader, writer) = stream.unwrap().split();
        match closes {
            true => server.close().await,
            false => drop((server, streams)),
        }
        // The streams are reset before the session says goodbye.
        assert_eq!(reader.next().await, Err(ReadError::Reset));
        assert!(matches!(client.ended().await, SessionEnd::GoAway));
        assert!(writer.write(b"x").await.is_err());
        assert!(matches!(client.open(&named("b")).await, Err(OpenError::Ended)));
        drop(other);
    }
    // A connection that breaks.
    let (near, mut far) = duplex(BUFFER);
    let client = Session::client(near, None);
    let opening = tokio::spawn({
        let client = client.clone();
        async move { client.open(&named("a")).await }
    });
    let mut opened = [0; 8];
    far.read_exact(&mut opened).await.unwrap();
    assert_eq!(&opened[..4], b"\x80\x03\0\x01");
    far.write_all(&control(2, 0, &[0, 0, 0, 1])).await.unwrap();
    let (mut reader, _writer) = opening.await.unwrap().unwrap().split();
    far.write_all(&data(1, 0, b"some")).await.unwrap();
    drop(far);
    assert_eq!(&reader.next().await.unwrap().unwrap()[..], b"some");
    assert_eq!(reader.next().await, Err(ReadError::SessionEnded));
    assert!(matches!(client.ended().await, SessionEnd::Disconnected));
}

/// A reader that does not read stops the writer after some tens of kilobytes, and other streams, too; when it is
/// dropped, they go on.
#[tokio::test(start_paused = true)]
async fn a_slow_reader_slows_the_peer() {
    let (client, _server, mut streams) = pair();
    let accepting = tokio::spawn(async move {
        let mut accepted = Vec::new();
        for _ in 0..2 {
            let stream = streams.recv().await.unwrap();
            stream.accept().await.unwrap();
            accepted.push(stream.split());
        }
        (accepted, streams)
    });
    let slow = client.open(&named("slow")).await.unwrap();
    let (_, other) = client.open(&named("other")).await.unwrap().split();
    let (mut accepted, _streams) = accepting.await.unwrap();
    let (_reader, writer) = slow.split();
    let mut written = 0;
    while timeout(Duration::from_secs(1), writer.write(&[7; 1024])).await.is_ok() {
        written += 1024;
        assert!(written < 100 << 10, "{written} bytes wait");
    }
    let (slow_reader, _slow_writer) = accepted.remove(0);
    drop(slow_reader);
    other.write(b"hello").await.unwrap();
    let (mut reader, _writer) = accepted.remove(0);
    assert_eq!(&reader.next().await.unwrap().unwrap()[..], b"hello");
}

/// A peer that does not read keeps nobody waiting when the session is closed.
#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_a_peer_that_does_not_read() {
    let (near, mut far) = duplex(64);
    let client = Session::client(near, None);
    let opening = tokio::spawn({
        let client = client.clone();
        async move { client.open(&named("a")).await }
    });
    let mut opened = vec![0; 8 + 10 + 6 + 5 + 23 + 5];
    far.read_exact(&mut opened).await.unwrap();
    far.write_all(&control(2, 0, &[0, 0, 0, 1])).await.unwrap();
    let (_reader, writer) = opening.await.unwrap().unwrap().split();
    let writing = tokio::spawn(async move { writer.write(&[0; 100_000]).await });
    assert!(timeout(Duration::from_secs(60), client.close()).await.is_ok());
    assert!(timeout(Duration::from_secs(60), writing).await.unwrap().unwrap().is_err());
    // The connection is closed although a stream is left.
    let mut rest = Vec::new();
    timeout(Duration::from_secs(60), far.read_to_end(&mut rest)).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn pings_are_answered_and_sent_one_at_a_time() {
    let (near, mut far) = duplex(BUFFER);
    let client = Session::client(near, Some(Duration::from_secs(5)));
    far.write_all(&control(6, 0, &[0, 0, 0, 2])).await.unwrap();
    let mut frame = [0; 12];
    far.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame[8..], [0, 0, 0, 2]);
    far.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame[8..], [0, 0, 0, 1]);
    // The next one waits for the answer.
    assert!(timeout(Duration::from_secs(60), far.read_exact(&mut frame)).await.is_err());
    far.write_all(&control(6, 0, &[0, 0, 0, 1])).await.unwrap();
    far.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame[8..], [0, 0, 0, 3]);
    drop(client);
}

/// Sends bytes to a server that accepts and keeps all streams, until the session ends; the answers are read or not.
async fn attack(bytes: Vec<u8>, reads: bool) -> (SessionEnd, Vec<u8>) {
    let (mut near, far) = duplex(BUFFER);
    let (server, mut streams) = Session::server(far);
    let accepting = tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Some(stream) = streams.recv().await {
            kept.push(stream);
        }
    });
    let mut answers = Vec::new();
    let last = control(6, 0, &[0, 0, 0, 99]);
    if reads {
        let (mut input, mut output) = tokio::io::split(near);
        let reading = async {
            while !answers.ends_with(&last) && input.read_buf(&mut answers).await.is_ok_and(|read| read > 0) {
            }
        };
        let writing = async { output.write_all(&[&bytes[..], &last].concat()).await.ok() };
        // A frame that announces more than there is takes the ping, too.
        timeout(Duration::from_secs(60), async { tokio::join!(writing, reading) }).await.ok();
        output.shutdown().await.ok();
        if answers.ends_with(&last) {
            answers.truncate(answers.len() - last.len());
        }
    } else {
        near.write_all(&bytes).await.ok();
    }
    let end = timeout(Duration::from_secs(60), server.ended()).await.unwrap();
    drop(server);
    accepting.await.unwrap();
    (end, answers)
}

#[tokio::test(start_paused = true)]
async fn floods_without_readers_of_the_answers_end_the_session() {
    let pings = control(6, 0, &[0, 0, 0, 1]).repeat(100_000);
    let invalid = [open(2, true), open(2, false).repeat(100_000)].concat();
    for flood in [pings, invalid] {
        let (end, _) = attack(flood, false).await;
        assert!(
            matches!(&end, SessionEnd::Failed(error) if error.to_string().contains("does not read")),
            "{end:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn floods_that_need_no_answer_are_read_and_forgotten() {
    let resets = control(3, 0, &[0, 0, 0, 9, 0, 0, 0, 5]).repeat(50_000);
    let unknown = data(77, 0, &[1; 100]).repeat(10_000);
    let ends = data(9, 1, &[]).repeat(50_000);
    let updates = control(9, 0, &[0, 0, 0, 1, 0, 0, 0, 5]).repeat(50_000);
    for flood in [resets, unknown, ends, updates] {
        let (end, answers) = attack(flood, true).await;
        assert!(matches!(end, SessionEnd::Disconnected), "{end:?}");
        assert_eq!(answers, b"");
    }
}

#[tokio::test(start_paused = true)]
async fn the_streams_are_bounded_in_number() {
    let frames: Vec<u8> =
        (0..=MAX_STREAMS as u32 + 9).flat_map(|number| open(2 * number + 1, number == 0)).collect();
    let (end, answers) = attack(frames, true).await;
    assert!(matches!(end, SessionEnd::Disconnected), "{end:?}");
    let refused = answers.chunks(16).filter(|frame| frame[12..] == [0, 0, 0, 3]).count();
    assert_eq!(refused, 10);
    // Those that end make room.
    let frames: Vec<u8> = (0..5_000_u32)
        .flat_map(|number| {
            let stream = 2 * number + 1;
            [open(stream, number == 0), control(3, 0, &[&stream.to_be_bytes()[..], &[0, 0, 0, 5]].concat())]
                .concat()
        })
        .collect();
    let (end, answers) = attack(frames, true).await;
    assert!(matches!(end, SessionEnd::Disconnected), "{end:?}");
    assert!(!answers.chunks(16).any(|frame| frame[12..] == [0, 0, 0, 3]));
}

#[tokio::test(start_paused = true)]
async fn frames_that_lie_end_the_session() {
    let cases: [(Vec<u8>, &str); 7] = [
        // A count of headers that their block could not have.
        (control(1, 0, b"\0\0\0\x01\0\0\0\0\0\0\x78\xbb\xe3\xc6\xa7\xc2\0\x04\0\xfb\xff\xff\xff\xff\xff\0\0\0\xff\xff"), "the headers are malformed"),
        (control(1, 0, b"\0\0\0\x01\0\0\0\0\0\0garbage"), "the headers cannot be decompressed"),
        (control(1, 0, b"\0\0\0\0\0\0\0\0\0\0"), "stream 0 does not exist"),
        (control(3, 0, b"\0\0\0\x01"), "a control frame of type 3 has 4 bytes"),
        (control(10, 0, b""), "the frame type 10 is unknown"),
        (vec![0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff], "a control frame of type 1 has 16777215 bytes"),
        ([&[0, 0, 0, 1, 0, 0xff, 0xff, 0xff][..], b"less"].concat(), "unexpected end of file"),
    ];
    for (frames, message) in cases {
        let (end, _) = attack(frames, true).await;
        assert!(
            matches!(&end, SessionEnd::Failed(error) if error.to_string().contains(message)),
            "{end:?}: {message}"
        );
    }
    // Headers of 64 MB in a frame of 63 KB.
    let mut bomb = b"\0\0\0\x01\0\0\0\0\0\0".to_vec();
    let zeros = miniz_oxide::deflate::compress_to_vec_zlib(&vec![0; 60 << 20], 9);
    bomb.extend_from_slice(&zeros[..zeros.len().min(60 << 10)]);
    let (end, _) = attack(control(1, 0, &bomb), true).await;
    assert!(matches!(&end, SessionEnd::Failed(error) if error.to_string().contains("too long")), "{end:?}");
}

#[tokio::test]
async fn many_streams_are_served_side_by_side() {
    let (client, _server, mut streams) = pair();
    let serving = tokio::spawn(async move {
        let mut tasks = Vec::new();
        for _ in 0..100 {
            let stream = streams.recv().await.unwrap();
            tasks.push(tokio::spawn(async move {
                stream.accept().await.unwrap();
                let (mut reader, writer) = stream.split();
                while let Some(bytes) = reader.next().await.unwrap() {
                    writer.write(&bytes).await.unwrap();
                }
                writer.finish().await.unwrap();
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        streams.recv().await
    });
    let all = (0..100_u8).map(|number| {
        let client = client.clone();
        tokio::spawn(async move {
            let (mut reader, writer) = client.open(&named("data")).await.unwrap().split();
            let sent = vec![number; 10_000];
            let copy = sent.clone();
            let writing = tokio::spawn(async move {
                writer.write(&copy).await.unwrap();
                writer.finish().await.unwrap();
            });
            let mut received = Vec::new();
            while let Some(bytes) = reader.next().await.unwrap() {
                received.extend_from_slice(&bytes);
            }
            writing.await.unwrap();
            assert_eq!(received, sent);
        })
    });
    for done in join_all(all).await {
        done.unwrap();
    }
    client.close().await;
    serving.await.unwrap();
}
