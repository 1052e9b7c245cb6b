//! The memory of commands that do nothing, and of those whose client does not read.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

use pintle_counting_allocator::{CountingAllocator, peak_of};
use pintle_dialer::{Client, Dialer};
use pintle_remotecommand::{Command, CommandStreams};
use pintle_websocket::{Event, Reader, Role};
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    net::{TcpListener, TcpStream},
    time::timeout,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const COMMANDS: usize = 200;
/// The most memory of a command that does nothing, in bytes, with the buffers of this test's client and node.
const IDLE_BYTES: usize = 40 << 10;
/// The most memory of a command whose client does not read.
const SLOW_BYTES: usize = 160 << 10;

/// A node that accepts all streams, says a byte on standard output, and then as many as it is told.
async fn node(mut connection: TcpStream, bytes: usize) {
    let mut last = [0; 4];
    while last != *b"\r\n\r\n" {
        last.rotate_left(1);
        last[3] = connection.read_u8().await.unwrap();
    }
    let head = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n";
    connection.write_all(head).await.unwrap();
    for stream in [1, 3, 5, 7] {
        let mut header = [0; 8];
        connection.read_exact(&mut header).await.unwrap();
        let mut payload = vec![0; usize::from(header[6]) << 8 | usize::from(header[7])];
        connection.read_exact(&mut payload).await.unwrap();
        connection.write_all(&[0x80, 3, 0, 2, 0, 0, 0, 4, 0, 0, 0, stream]).await.unwrap();
    }
    connection.write_all(b"\0\0\0\x05\0\0\0\x01x").await.unwrap();
    // One frame of the largest length, whose end never comes.
    if bytes > 0 {
        connection.write_all(b"\0\0\0\x05\0\xff\xff\xff").await.unwrap();
        let piece = [7; 1024];
        for _ in 0..bytes / piece.len() {
            connection.write_all(&piece).await.unwrap();
        }
    }
    connection.read_u8().await.ok();
}

/// Starts commands, and waits until the node has said its byte to each client.
async fn start(bytes: usize) -> Vec<Reader<DuplexStream>> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(node(connection, bytes));
        }
    });
    let client = Arc::new(Client::of_hosts(None, Duration::from_secs(20), &Dialer::default()).unwrap());
    let mut clients = Vec::new();
    for _ in 0..COMMANDS {
        let (near, far) = duplex(1024);
        let streams = CommandStreams { stdin: true, stdout: true, stderr: true, tty: false };
        let command = Command { client: client.clone(), uri: Ok(uri.parse().unwrap()), streams };
        tokio::spawn(command.serve(far));
        let mut reader = Reader::new(near, Role::Client);
        let said = async {
            loop {
                match reader.next().await.unwrap().unwrap() {
                    Event::Piece { bytes, .. } if bytes.ends_with(b"x") => break,
                    Event::Piece { .. } => {}
                    other => panic!("{other:?}"),
                }
            }
        };
        timeout(Duration::from_secs(20), said).await.unwrap();
        clients.push(reader);
    }
    clients
}

#[test]
fn the_memory_of_commands_is_bounded() {
    for (bytes, limit) in [(0, IDLE_BYTES), (256 << 10, SLOW_BYTES)] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (_, peak) = peak_of(|| {
            runtime.block_on(async {
                let clients = start(bytes).await;
                // Bytes that the nodes send meanwhile wait in the sockets.
                for _ in 0..1000 {
                    tokio::task::yield_now().await;
                }
                drop(clients);
            });
        });
        println!("{} bytes a command", peak / COMMANDS);
        assert!(peak / COMMANDS <= limit, "{} bytes a command", peak / COMMANDS);
    }
}
