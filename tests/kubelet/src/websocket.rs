//! Commands over WebSocket.

use crate::{
    command,
    streams::{Ends, Wanted, streams},
};
use bytes::Bytes;
use pintle_websocket::{CloseCode, Event, Opcode, Reader, Role, Writer};
use std::{path::PathBuf, sync::Arc};
use tokio::{
    io::{AsyncRead, AsyncWrite, split},
    sync::{Mutex, mpsc},
};

/// The subprotocols, the preferred one first.
const PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

/// The subprotocol for a client.
pub(crate) fn choose(offered: &[String]) -> Option<&'static str> {
    PROTOCOLS.into_iter().find(|protocol| offered.iter().any(|offer| offer == protocol))
}

/// Runs a command for a client of an upgraded connection.
pub(crate) async fn serve<S>(connection: S, words: Vec<String>, wanted: Wanted, root: Arc<PathBuf>)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (input, output) = split(connection);
    let writer = Arc::new(Mutex::new(Writer::new(output, Role::Server)));
    let (streams, Ends { stdin, sizes, stdout, stderr }) = streams();
    let reading = tokio::spawn(read(Reader::new(input, Role::Server), writer.clone(), stdin, sizes));
    send(&writer, if wanted.stdout { 1 } else { 3 }, &[]).await;
    let writing =
        [(1, stdout, wanted.stdout), (2, stderr, wanted.stderr)].map(|(channel, mut from, is_wanted)| {
            let writer = writer.clone();
            tokio::spawn(async move {
                while let Some(bytes) = from.recv().await {
                    if is_wanted {
                        send(&writer, channel, &bytes).await;
                    }
                }
            })
        });
    let status = command::run(&words, wanted, streams, &root).await;
    for written in writing {
        written.await.ok();
    }
    send(&writer, 3, status.to_string().as_bytes()).await;
    writer.lock().await.close(CloseCode::NORMAL).await.ok();
    // The client leaves when it has the status.
    reading.await.ok();
}

async fn send<W: AsyncWrite + Unpin>(writer: &Mutex<Writer<W>>, channel: u8, bytes: &[u8]) {
    writer.lock().await.send(Opcode::Binary, &[channel], bytes).await.ok();
}

async fn read<R, W>(
    mut reader: Reader<R>,
    writer: Arc<Mutex<Writer<W>>>,
    stdin: mpsc::Sender<Bytes>,
    sizes: mpsc::Sender<Bytes>,
) where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (mut stdin, mut channel) = (Some(stdin), 0);
    while let Ok(Some(event)) = reader.next().await {
        match event {
            Event::Piece { is_first, mut bytes, .. } if !bytes.is_empty() => {
                if is_first {
                    channel = bytes.split_to(1).first().copied().unwrap_or_default();
                }
                match (channel, &stdin) {
                    (0, Some(stdin)) if !bytes.is_empty() => drop(stdin.send(bytes).await),
                    (4, _) => drop(sizes.send(bytes).await),
                    // The client ends its input.
                    (255, _) if *bytes == [0] => stdin = None,
                    _ => {}
                }
            }
            Event::Ping(bytes) => drop(writer.lock().await.send(Opcode::Pong, &bytes, &[]).await),
            Event::Close(_) => break,
            Event::Piece { .. } | Event::Pong => {}
        }
    }
}
