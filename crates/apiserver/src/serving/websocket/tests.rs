//! Tests of WebSocket connections between memory pipes.

use super::*;
use crate::{
    base::{body::Body, connection::ConnectionHandle, response::Response},
    serving::{
        cutoff::{Cutoff, guard},
        response_budget::ResponseBudget,
    },
};
use futures_util::stream;
use tokio::{
    io::{DuplexStream, duplex},
    task::JoinHandle,
    time::Instant,
};

/// A client's end of a connection on which frames are sent, and the task that sends them.
fn start(frames: Body, room: usize) -> (DuplexStream, JoinHandle<Option<()>>) {
    let (client, server) = duplex(room);
    let handle = ConnectionHandle::new(10);
    let cutoff = Cutoff::new(handle.clone());
    let budget = ResponseBudget::default();
    let response = Response::new(frames);
    let frames = SentBody::of(response, &budget, cutoff.clone(), handle.begin().answered()).into_body();
    let task = tokio::spawn(async move { guard(&cutoff, pin!(serve(server, frames))).await });
    (client, task)
}

/// A masked frame of the client.
fn said(first: u8, payload: &[u8]) -> Vec<u8> {
    [&[first, 0x80 | payload.len() as u8, 0, 0, 0, 0], payload].concat()
}

/// Everything that the server sends.
async fn rest(client: &mut DuplexStream) -> Vec<u8> {
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.unwrap();
    rest
}

#[tokio::test(start_paused = true)]
async fn the_frames_are_followed_by_a_close_frame() {
    let (mut client, task) = start(Body::stream(stream::iter([Bytes::from("a"), Bytes::from("b")])), 1024);
    assert_eq!(rest(&mut client).await, b"ab\x88\x02\x03\xe8");
    let begun = Instant::now();
    // The client stays.
    assert_eq!(task.await.unwrap(), Some(()));
    assert_eq!(begun.elapsed(), CLOSE_TIMEOUT);
}

#[tokio::test]
async fn a_client_gets_pongs_and_a_close_frame() {
    let (mut client, task) = start(Body::stream(stream::pending()), 1024);
    client.write_all(&said(0x81, b"hello")).await.unwrap();
    client.write_all(&said(0x89, b"here?")).await.unwrap();
    let mut pong = [0; 7];
    client.read_exact(&mut pong).await.unwrap();
    assert_eq!(&pong, b"\x8a\x05here?");
    client.write_all(&said(0x88, &[3, 0xe9])).await.unwrap();
    assert_eq!(rest(&mut client).await, b"\x88\x02\x03\xe8");
    drop(client);
    assert_eq!(task.await.unwrap(), Some(()));
}

#[tokio::test]
async fn a_client_that_does_not_speak_the_protocol_is_told_so() {
    let (mut client, task) = start(Body::stream(stream::pending()), 1024);
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert_eq!(rest(&mut client).await, b"\x88\x02\x03\xea");
    drop(client);
    assert_eq!(task.await.unwrap(), Some(()));
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_response() {
    let (client, task) = start(Body::stream(stream::pending()), 1024);
    drop(client);
    assert_eq!(task.await.unwrap(), Some(()));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_cut_off_and_its_pings_are_not_kept() {
    let frames = stream::repeat(Bytes::from(vec![b'x'; 1000]));
    let (mut client, task) = start(Body::stream(frames), 4096);
    let begun = Instant::now();
    let mut pings = 0;
    while client.write_all(&said(0x89, &[0; 125])).await.is_ok() {
        pings += 1;
    }
    assert!(pings * 131 <= 4096 + (16 << 10), "{pings}");
    assert_eq!(task.await.unwrap(), None);
    assert!(begun.elapsed() <= crate::serving::cutoff::STALL_TIMEOUT, "{:?}", begun.elapsed());
}
