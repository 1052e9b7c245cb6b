//! The standard streams of a command.

use crate::{
    channels::{Channels, ERROR, STDERR, STDOUT},
    client_input::ClientInput,
    exit::Exit,
    protocol::{Protocol, V5},
    session,
    terminal_size::TerminalSizes,
};
use bytes::Bytes;
use http::{HeaderMap, Uri, header};
use pintle_dialer::Client;
use pintle_spdy::{ReadError, Session, Stream, StreamReader, StreamWriter};
use pintle_websocket::{CloseCode, Reader, Role, Writer, is_websocket_request};
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite, split},
    sync::mpsc,
    time::timeout,
};

/// How long a command may go on after its client has left, so that it reads the end of its input.
const LEFT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may take to leave after the farewell. A connection that is closed before loses what the client has
/// not read.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes of a node's final message.
const MAX_MESSAGE_BYTES: usize = 256 << 10;

/// The streams of a command that a client uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandStreams {
    /// Standard input.
    pub stdin: bool,
    /// Standard output.
    pub stdout: bool,
    /// Standard error. A terminal has none of its own.
    pub stderr: bool,
    /// Whether the streams are a terminal, which has a size.
    pub tty: bool,
}

/// A command of a client that speaks `v5.channel.k8s.io` over WebSocket, on a node that speaks SPDY.
#[derive(Debug)]
pub struct Command {
    /// The client of the node.
    pub client: Arc<Client>,
    /// The URL at the node, or the text of the error for the client when there is none.
    pub uri: Result<Uri, String>,
    /// The streams that the client uses.
    pub streams: CommandStreams,
}

impl Command {
    /// Whether a request is of a client that is translated.
    pub fn translates(headers: &HeaderMap) -> bool {
        let protocols = headers.get(header::SEC_WEBSOCKET_PROTOCOL).and_then(|value| value.to_str().ok());
        is_websocket_request(headers)
            && protocols.is_some_and(|protocols| protocols.split(',').any(|protocol| protocol.trim() == V5))
    }

    /// The subprotocol of the response that switches protocols.
    pub const PROTOCOL: &'static str = V5;

    /// Runs the command for the client of an upgraded connection, until the command ends, or for half a minute longer than
    /// the client stays. The node is connected to now; all errors reach the client as the final status. It returns the
    /// status code of the result, for metrics.
    pub async fn serve<S: AsyncRead + AsyncWrite>(self, connection: S) -> u16 {
        let (input, output) = split(connection);
        tokio::pin!(input, output);
        let channels = Channels::new(Writer::new(output, Role::Server));
        // It tells the client that the connection is established.
        let first = match self.streams {
            CommandStreams { stdout: true, .. } => STDOUT,
            CommandStreams { stderr: true, .. } => STDERR,
            _ => ERROR,
        };
        if channels.send(first, &[]).await.is_err() {
            return 400;
        }
        let (stdin, stdin_of_client) = self.streams.stdin.then(|| mpsc::channel(1)).unzip();
        let (resize, sizes) = self.streams.tty.then(|| mpsc::channel(1)).unzip();
        let client_input = ClientInput { stdin, resize };
        let running = self.run(&channels, stdin_of_client, sizes);
        tokio::pin!(running);
        let reading = client_input.read(Reader::new(&mut input, Role::Server), &channels);
        let left = tokio::select! {
            biased;
            exit = &mut running => Ok(exit),
            code = reading => Err(code),
        };
        let exit = match left {
            Ok(exit) => {
                channels.farewell(Some(&exit.message()), CloseCode::NORMAL).await;
                let mut nowhere = tokio::io::sink();
                let leaving = tokio::io::copy(&mut input, &mut nowhere);
                timeout(LEAVE_TIMEOUT, leaving).await.ok();
                exit
            }
            Err(code) => {
                channels.farewell(None, code).await;
                match timeout(LEFT_TIMEOUT, running).await {
                    Ok(exit) => exit,
                    Err(_) => Exit::Success,
                }
            }
        };
        match exit {
            Exit::Success | Exit::Code(_) => 200,
            Exit::Error(_) => 500,
        }
    }

    /// Runs the command at the node.
    async fn run<W: AsyncWrite + Unpin>(
        self,
        channels: &Channels<W>,
        stdin: Option<mpsc::Receiver<Bytes>>,
        sizes: Option<mpsc::Receiver<Bytes>>,
    ) -> Exit {
        let opened = match &self.uri {
            // The memory for connecting is not kept while the command runs.
            Ok(uri) => Box::pin(session::open(&self.client, uri)).await,
            Err(error) => Err(error.clone()),
        };
        let (session, protocol) = match opened {
            Ok(opened) => opened,
            Err(error) => return Exit::Error(error),
        };
        let exit = match Streams::open(&session, protocol, self.streams).await {
            Ok(streams) => streams.carry(channels, stdin, sizes, protocol).await,
            Err(error) => Exit::Error(error),
        };
        session.close().await;
        exit
    }
}

/// The streams at the node.
struct Streams {
    error: Stream,
    stdin: Option<Stream>,
    stdout: Option<Stream>,
    stderr: Option<Stream>,
    resize: Option<Stream>,
}

impl Streams {
    /// Opens the streams. The node begins when it has all of them.
    async fn open(session: &Session, protocol: Protocol, wanted: CommandStreams) -> Result<Streams, String> {
        let open = async |is_wanted: bool, kind: &str| match is_wanted {
            true => session::stream(session, kind).await.map(Some),
            false => Ok(None),
        };
        let has_sizes = matches!(protocol, Protocol::V3 | Protocol::V4);
        Ok(Streams {
            error: session::stream(session, "error").await?,
            stdin: open(wanted.stdin, "stdin").await?,
            stdout: open(wanted.stdout, "stdout").await?,
            stderr: open(wanted.stderr && !wanted.tty, "stderr").await?,
            resize: open(wanted.tty && has_sizes, "resize").await?,
        })
    }

    /// Carries the streams until the command has ended.
    async fn carry<W: AsyncWrite + Unpin>(
        self,
        channels: &Channels<W>,
        stdin: Option<mpsc::Receiver<Bytes>>,
        sizes: Option<mpsc::Receiver<Bytes>>,
        protocol: Protocol,
    ) -> Exit {
        let (error, _error_writer) = self.error.split();
        // Each future is pinned here and polled by reference: one inside of another one is held twice.
        let stdout = pin!(copy_output(self.stdout, channels, STDOUT));
        let stderr = pin!(copy_output(self.stderr, channels, STDERR));
        let message = pin!(read_message(error, protocol));
        let stdin = pin!(copy_input(self.stdin, stdin, protocol));
        // Most commands have no terminal.
        let sizes = Box::pin(copy_sizes(self.resize, sizes));
        let outputs = async { tokio::join!(stdout, stderr) };
        let ended = async {
            if protocol != Protocol::V1 {
                let (_streams, message) = tokio::join!(outputs, message);
                return message;
            }
            // The end of the output is the end of the command, unless there is a message before.
            let message = async {
                match message.await {
                    Exit::Success => std::future::pending().await,
                    exit => exit,
                }
            };
            tokio::select! {
                biased;
                exit = message => exit,
                _ = outputs => Exit::Success,
            }
        };
        let input = async {
            tokio::join!(stdin, sizes);
            std::future::pending::<()>().await
        };
        tokio::select! {
            exit = ended => exit,
            () = input => Exit::Success,
        }
    }
}

/// Copies a stream of the node to a channel, and returns it at its end. When the client has left, the rest is discarded.
///
/// A stream that is dropped is reset, and nodes may forget what a stream still had when it is reset. So all streams are
/// kept until the command has ended.
async fn copy_output<W: AsyncWrite + Unpin>(
    stream: Option<Stream>,
    channels: &Channels<W>,
    channel: u8,
) -> Option<(StreamReader, StreamWriter)> {
    let (mut reader, writer) = stream?.split();
    let mut has_left = false;
    while let Ok(Some(bytes)) = reader.next().await {
        has_left = has_left || channels.send(channel, &bytes).await.is_err();
    }
    Some((reader, writer))
}

/// Copies the client's input to the node, and its end.
async fn copy_input(stream: Option<Stream>, input: Option<mpsc::Receiver<Bytes>>, protocol: Protocol) {
    let (Some(stream), Some(mut input)) = (stream, input) else { return };
    let (mut reader, writer) = stream.split();
    let copying = async {
        while let Some(bytes) = input.recv().await {
            if writer.write(&bytes).await.is_err() {
                break;
            }
        }
    };
    // The node ends the stream when the command reads no more.
    let closing = async { while let Ok(Some(_)) = reader.next().await {} };
    tokio::select! {
        () = copying => {}
        () = closing => {}
    }
    if protocol != Protocol::V1 {
        writer.finish().await.ok();
    }
    discard(input).await;
}

/// Copies the sizes of the client's terminal to the node.
async fn copy_sizes(stream: Option<Stream>, input: Option<mpsc::Receiver<Bytes>>) {
    let (Some(stream), Some(mut input)) = (stream, input) else { return };
    let (_reader, writer) = stream.split();
    let mut sizes = TerminalSizes::default();
    while let Some(bytes) = input.recv().await {
        let lines = sizes.read(&bytes);
        if !lines.is_empty() && writer.write(&lines).await.is_err() {
            break;
        }
    }
    discard(input).await;
}

/// Takes what a client goes on sending, so that its other channels are still read. It does not return: the caller keeps
/// its stream.
async fn discard(mut input: mpsc::Receiver<Bytes>) {
    while input.recv().await.is_some() {}
    std::future::pending().await
}

/// Reads the final message of the node.
async fn read_message(mut reader: StreamReader, protocol: Protocol) -> Exit {
    let mut message = Vec::new();
    loop {
        match reader.next().await {
            Ok(Some(bytes)) if message.len() + bytes.len() <= MAX_MESSAGE_BYTES => {
                message.extend_from_slice(&bytes)
            }
            // The rest of a message that is too long is discarded.
            Ok(Some(_)) => {}
            Err(ReadError::SessionEnded) if message.is_empty() && protocol == Protocol::V4 => {
                // The command may still run: a node of this version says so when it has ended.
                return Exit::Error("error reading from error stream: unexpected EOF".to_owned());
            }
            Ok(None) | Err(_) => return Exit::read(protocol, &message),
        }
    }
}
