//! Commands of clients that speak WebSocket, on nodes that speak SPDY.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

use pintle_dialer::{Client, Dialer};
use pintle_machinery::{Value, json};
use pintle_remotecommand::{Command, CommandStreams};
use pintle_spdy::{Session, Stream, StreamReader, StreamWriter};
use pintle_websocket::{CloseCode, Event, Opcode, Reader, Role, Writer};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split},
    net::TcpListener,
    sync::mpsc,
    task::JoinHandle,
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// The streams of a command at a node, by type.
type Streams = HashMap<String, (StreamReader, StreamWriter)>;

/// A node that answers a request, and runs a command with its streams.
struct Node {
    url: String,
    /// The head of the request.
    head: JoinHandle<String>,
}

impl Node {
    /// A node that refuses with this response.
    async fn refusing(response: &'static str) -> Node {
        Node::start(response.to_owned(), |_, _| async {}, 0).await
    }

    /// A node that speaks a version of the protocol, and runs a command when it has its streams.
    async fn running<F>(
        version: &str,
        count: usize,
        command: impl FnOnce(Session, Streams) -> F + Send + 'static,
    ) -> Node
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: {version}\r\n\r\n"
        );
        Node::start(head, command, count).await
    }

    async fn start<F>(
        response: String,
        command: impl FnOnce(Session, Streams) -> F + Send + 'static,
        count: usize,
    ) -> Node
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/exec/ns/pod/c?command=x", listener.local_addr().unwrap());
        let (heads, mut head) = mpsc::channel(1);
        tokio::spawn(async move {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(connection.read_u8().await.unwrap());
            }
            heads.send(String::from_utf8(head).unwrap()).await.unwrap();
            connection.write_all(response.as_bytes()).await.unwrap();
            if count == 0 {
                return;
            }
            let (session, mut incoming) = Session::server(connection);
            let mut streams = Streams::new();
            while streams.len() < count {
                let stream: Stream = incoming.recv().await.unwrap();
                stream.accept().await.unwrap();
                let kind = stream.headers().get("streamtype").unwrap().to_owned();
                streams.insert(kind, stream.split());
            }
            command(session.clone(), streams).await;
            session.close().await;
        });
        Node { url, head: tokio::spawn(async move { head.recv().await.unwrap() }) }
    }
}

/// A client of a command.
struct CommandClient {
    reader: Reader<ReadHalf<DuplexStream>>,
    writer: Writer<WriteHalf<DuplexStream>>,
    code: JoinHandle<u16>,
}

impl CommandClient {
    fn start(url: &str, streams: CommandStreams) -> CommandClient {
        let (near, far) = duplex(4096);
        let client = Arc::new(Client::of_hosts(None, Duration::from_secs(5), &Dialer::default()).unwrap());
        let command = Command { client, uri: Ok(url.parse().unwrap()), streams };
        let code = tokio::spawn(command.serve(far));
        let (input, output) = split(near);
        CommandClient {
            reader: Reader::new(input, Role::Client),
            writer: Writer::new(output, Role::Client),
            code,
        }
    }

    async fn send(&mut self, channel: u8, bytes: &[u8]) {
        self.writer.send(Opcode::Binary, &[channel], bytes).await.unwrap();
    }

    async fn code(self) -> u16 {
        drop((self.reader, self.writer));
        // A command may read the end of its input for a while.
        timeout(3 * PATIENCE, self.code).await.unwrap().unwrap()
    }
}

/// The output of each channel until the connection is closed, and the close code.
async fn read(reader: &mut Reader<ReadHalf<DuplexStream>>) -> (HashMap<u8, String>, u16) {
    let (mut channels, mut channel) = (HashMap::<u8, String>::new(), 0);
    loop {
        match timeout(PATIENCE, reader.next()).await.unwrap().unwrap() {
            Some(Event::Piece { is_first, bytes, .. }) => {
                let rest = if is_first { &bytes[1..] } else { &bytes };
                channel = if is_first { bytes[0] } else { channel };
                channels.entry(channel).or_default().push_str(std::str::from_utf8(rest).unwrap());
            }
            Some(Event::Close(code)) => return (channels, code.unwrap()),
            Some(Event::Pong) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn all() -> CommandStreams {
    CommandStreams { stdin: true, stdout: true, stderr: true, tty: false }
}

fn output() -> CommandStreams {
    CommandStreams { stdout: true, ..CommandStreams::default() }
}

async fn text(reader: &mut StreamReader) -> String {
    let mut text = String::new();
    while let Ok(Some(bytes)) = reader.next().await {
        text.push_str(std::str::from_utf8(&bytes).unwrap());
    }
    text
}

fn status(channels: &HashMap<u8, String>) -> Value {
    serde_json::from_str(&channels[&3]).unwrap()
}

#[tokio::test]
async fn input_output_and_exit_code_pass() {
    let node = Node::running("v4.channel.k8s.io", 4, |_, mut streams| async move {
        let (stdin, _) = streams.get_mut("stdin").unwrap();
        let input = text(stdin).await;
        streams["stdout"].1.write(input.as_bytes()).await.unwrap();
        streams["stderr"].1.write(b"complaint").await.unwrap();
        let failure = json!({"status": "Failure", "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": "3"}]}});
        streams["error"].1.write(failure.to_string().as_bytes()).await.unwrap();
        for (_, writer) in streams.values() {
            writer.finish().await.unwrap();
        }
        streams["stdin"].1.finish().await.unwrap();
        // The client resets them when it has everything.
        text(&mut streams.get_mut("error").unwrap().0).await;
    })
    .await;
    let client = CommandClient::start(&node.url, all());
    let input = "0123456789".repeat(20_000);
    let sending = input.clone();
    let mut writer = client.writer;
    // All the input in one message, which is larger than all buffers.
    let sent = tokio::spawn(async move {
        for (channel, bytes) in [(0, sending.as_bytes()), (9, b"ignored"), (255, &[0])] {
            writer.send(Opcode::Binary, &[channel], bytes).await.unwrap();
        }
        writer
    });
    let mut reader = client.reader;
    let (channels, code) = read(&mut reader).await;
    let head = node.head.await.unwrap();
    assert!(head.starts_with("POST /exec/ns/pod/c?command=x HTTP/1.1\r\n"), "{head}");
    assert_eq!(head.matches(".k8s.io").count(), 5, "{head}");
    assert!(channels[&1] == input);
    assert_eq!((&channels[&2][..], code), ("complaint", 1000));
    assert_eq!(status(&channels)["details"]["causes"][0]["message"], "3");
    drop((reader, sent.await.unwrap()));
    assert_eq!(timeout(PATIENCE, client.code).await.unwrap().unwrap(), 200);
}

#[tokio::test]
async fn errors_of_nodes_are_told_on_the_connection() {
    let refused: [(&str, &str); 4] = [
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno\n", "unable to upgrade connection: no"),
        (
            "HTTP/1.1 403 Forbidden\r\nContent-Length: 16\r\n\r\n{\"message\":\"no\"}",
            "unable to upgrade connection: no",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "unable to upgrade connection: empty server response",
        ),
        (
            "HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n",
            "error sending request: Post \"http://elsewhere/\": redirect not allowed",
        ),
    ];
    for (response, message) in refused {
        let node = Node::refusing(response).await;
        let mut client = CommandClient::start(&node.url, all());
        let (channels, code) = read(&mut client.reader).await;
        let status = status(&channels);
        assert_eq!((&channels[&1][..], code), ("", 1000));
        assert_eq!(status["details"]["causes"][0]["message"], message);
        assert_eq!(status["code"], 500);
        assert_eq!(client.code().await, 500);
    }
    let mut client = CommandClient::start("http://127.0.0.1:1/x?a=b", CommandStreams::default());
    let (channels, _) = read(&mut client.reader).await;
    let expected = "Internal error occurred: error sending request: Post \"http://127.0.0.1:1/x?a=b\": dial tcp 127.0.0.1:1: connect: connection refused";
    assert_eq!(status(&channels)["message"], expected);
}

/// A node that resets its streams without a message has ended the command; one whose connection breaks has not.
#[tokio::test]
async fn a_connection_to_a_node_that_breaks_is_no_success() {
    let node = Node::running("v5.channel.k8s.io", 2, |session, streams| async move {
        streams["stdout"].1.write(b"some").await.unwrap();
        drop((session, streams));
    })
    .await;
    let mut client = CommandClient::start(&node.url, output());
    let (channels, _) = read(&mut client.reader).await;
    assert_eq!((&channels[&1][..], &status(&channels)["status"]), ("some", &json!("Success")));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = CommandClient::start(&format!("http://{}/", listener.local_addr().unwrap()), output());
    let (mut connection, _) = listener.accept().await.unwrap();
    connection.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n").await.unwrap();
    let mut received = Vec::new();
    for (stream, kind) in [(1, "error"), (3, "stdout")] {
        while !received.windows(kind.len()).any(|window| window == kind.as_bytes()) {
            connection.read_buf(&mut received).await.unwrap();
        }
        connection.write_all(&[0x80, 3, 0, 2, 0, 0, 0, 4, 0, 0, 0, stream]).await.unwrap();
    }
    drop(connection);
    let (channels, _) = read(&mut client.reader).await;
    let expected = "Internal error occurred: error reading from error stream: unexpected EOF";
    assert_eq!(status(&channels)["message"], expected);
}

#[tokio::test]
async fn sizes_of_terminals_pass_and_standard_error_does_not() {
    let node = Node::running("v4.channel.k8s.io", 4, |_, mut streams| async move {
        let (mut sizes, _resize) = streams.remove("resize").unwrap();
        let mut size = String::new();
        while size.matches('\n').count() < 2 {
            size.push_str(std::str::from_utf8(&sizes.next().await.unwrap().unwrap()).unwrap());
        }
        streams["stdout"].1.write(size.as_bytes()).await.unwrap();
        streams["error"].1.write(b"{\"status\":\"Success\"}").await.unwrap();
    })
    .await;
    let mut client = CommandClient::start(&node.url, CommandStreams { tty: true, ..all() });
    client.send(4, b"{\"Width\":80,\"Height\":24}").await;
    client.send(4, b"{\"Width\":132,\"Height\":43}").await;
    let (channels, _) = read(&mut client.reader).await;
    assert_eq!(channels[&1], "{\"Width\":80,\"Height\":24}\n{\"Width\":132,\"Height\":43}\n");
    assert_eq!(status(&channels)["status"], "Success");
}

/// A client that leaves, or ends a channel that does not exist, ends its input; the command may go on for a while.
#[tokio::test]
async fn the_input_ends_when_the_client_leaves() {
    for leave in [true, false] {
        let (ends, mut ended) = mpsc::channel(1);
        let node = Node::running("v4.channel.k8s.io", 4, |_, mut streams| async move {
            let (stdin, _) = streams.get_mut("stdin").unwrap();
            ends.send(text(stdin).await).await.unwrap();
        })
        .await;
        let mut client = CommandClient::start(&node.url, all());
        client.send(0, b"input").await;
        match leave {
            true => client.writer.close(CloseCode::NORMAL).await.unwrap(),
            false => client.send(255, &[9]).await,
        }
        let (channels, code) = read(&mut client.reader).await;
        assert_eq!((channels.contains_key(&3), code), (false, 1000));
        assert_eq!(timeout(PATIENCE, ended.recv()).await.unwrap().unwrap(), "input");
        client.code().await;
    }
}

#[tokio::test]
async fn pings_are_answered_and_frames_without_mask_end_the_connection() {
    let node = Node::running("v4.channel.k8s.io", 4, |session, _streams| async move {
        session.ended().await;
    })
    .await;
    let mut client = CommandClient::start(&node.url, all());
    client.writer.send(Opcode::Ping, b"p", &[]).await.unwrap();
    loop {
        match timeout(PATIENCE, client.reader.next()).await.unwrap().unwrap() {
            Some(Event::Pong) => break,
            Some(Event::Piece { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    let (near, far) = duplex(4096);
    let dialer = Arc::new(Client::of_hosts(None, Duration::from_secs(5), &Dialer::default()).unwrap());
    let command = Command { client: dialer, uri: Err("no".to_owned()), streams: all() };
    drop(client);
    let (input, output) = split(near);
    let mut writer = Writer::new(output, Role::Server);
    let mut reader = Reader::new(input, Role::Client);
    writer.send(Opcode::Binary, &[0], b"x").await.unwrap();
    let serving = tokio::spawn(command.serve(far));
    // The error of the node or that of the frame, whichever comes first.
    loop {
        match timeout(PATIENCE, reader.next()).await.unwrap().unwrap() {
            Some(Event::Close(_)) => break,
            Some(Event::Piece { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    drop((reader, writer));
    timeout(PATIENCE, serving).await.unwrap().unwrap();
}

/// A client that does not read stops the node.
#[tokio::test]
async fn a_slow_client_slows_the_command() {
    let (counts, mut count) = mpsc::channel(1);
    let node = Node::running("v4.channel.k8s.io", 2, |_, streams| async move {
        let (_, writer) = &streams["stdout"];
        let mut written = 0;
        while let Ok(sent) = timeout(Duration::from_millis(500), writer.write(&[7; 4096])).await {
            sent.unwrap();
            written += 4096;
        }
        counts.send(written).await.unwrap();
    })
    .await;
    let client = CommandClient::start(&node.url, output());
    let written = timeout(PATIENCE, count.recv()).await.unwrap().unwrap();
    // The buffers of the sockets are some megabytes.
    assert!(written < 32 << 20, "{written}");
    drop(client);
}

/// A client that does nothing is sent away after four hours, and not before; pings count as a sign of life.
#[tokio::test(start_paused = true)]
async fn an_idle_connection_ends() {
    // The node accepts the connection and says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = CommandClient::start(&format!("http://{}/", listener.local_addr().unwrap()), all());
    let begun = tokio::time::Instant::now();
    tokio::time::sleep(Duration::from_secs(3 * 3600)).await;
    client.writer.send(Opcode::Ping, b"", &[]).await.unwrap();
    loop {
        match client.reader.next().await.unwrap() {
            Some(Event::Piece { .. } | Event::Pong) => {}
            Some(Event::Close(code)) => break assert_eq!(code, Some(1000)),
            other => panic!("{other:?}"),
        }
    }
    let hours = begun.elapsed().as_secs() / 3600;
    assert_eq!(hours, 7);
    // The node has half a minute more.
    assert_eq!(client.code().await, 200);
    assert!(begun.elapsed() < Duration::from_secs(7 * 3600 + 60));
}
