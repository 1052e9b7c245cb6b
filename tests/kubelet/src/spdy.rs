//! Commands over SPDY.

use crate::{
    command,
    streams::{Ends, Wanted, streams},
};
use bytes::Bytes;
use pintle_spdy::{Session, StreamReader, StreamWriter};
use std::{collections::HashMap, path::PathBuf, sync::Arc};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};

/// The protocol that connections are upgraded to.
pub(crate) const SPDY: &str = "SPDY/3.1";

/// Runs a command for a client of an upgraded connection, in the fourth version of the protocol.
pub(crate) async fn serve<S>(connection: S, words: Vec<String>, wanted: Wanted, root: Arc<PathBuf>)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (session, mut opened) = Session::server(connection);
    let count = 1 + [wanted.stdin, wanted.stdout, wanted.stderr, wanted.tty].iter().filter(|is| **is).count();
    let mut all: HashMap<String, (StreamReader, StreamWriter)> = HashMap::new();
    while all.len() < count {
        let Some(stream) = opened.recv().await else { return };
        let kind = stream.headers().get("streamtype").unwrap_or_default().to_owned();
        if stream.accept().await.is_err() {
            return;
        }
        all.insert(kind, stream.split());
    }
    let (streams, Ends { stdin, sizes, stdout, stderr }) = streams();
    let mut reading = Vec::new();
    let mut writers = Vec::new();
    for (kind, to) in [("stdin", stdin), ("resize", sizes)] {
        if let Some((reader, writer)) = all.remove(kind) {
            writers.push(writer);
            reading.push(tokio::spawn(read(reader, to)));
        }
    }
    let mut output = |kind: &str, from| tokio::spawn(write(all.remove(kind), from));
    let writing = [output("stdout", stdout), output("stderr", stderr)];
    let status = command::run(&words, wanted, streams, &root).await;
    let mut kept = Vec::new();
    for written in writing {
        kept.push(written.await.ok());
    }
    if let Some((_, writer)) = all.remove("error") {
        writer.write(status.to_string().as_bytes()).await.ok();
        writer.finish().await.ok();
        writers.push(writer);
    }
    // The client closes the session when it has the status.
    session.ended().await;
}

async fn read(mut reader: StreamReader, to: mpsc::Sender<Bytes>) {
    while let Ok(Some(bytes)) = reader.next().await {
        to.send(bytes).await.ok();
    }
}

/// Writes a stream to its end, and returns it: a stream that is dropped is reset.
async fn write(
    stream: Option<(StreamReader, StreamWriter)>,
    mut from: mpsc::Receiver<Bytes>,
) -> Option<(StreamReader, StreamWriter)> {
    while let Some(bytes) = from.recv().await {
        if let Some((_, writer)) = &stream {
            writer.write(&bytes).await.ok();
        }
    }
    if let Some((_, writer)) = &stream {
        writer.finish().await.ok();
    }
    stream
}
