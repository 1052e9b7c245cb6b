//! Connections to ports: each of them says its port, and then what it hears.

use pintle_spdy::{Session, Stream};
use pintle_websocket::{Event, Opcode, Reader, Role, Writer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, duplex, split};

/// The subprotocol of a WebSocket connection that carries the bytes of a SPDY connection.
pub(crate) const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";

/// The subprotocol for a client of WebSocket.
pub(crate) fn choose(offered: &[String]) -> Option<&'static str> {
    [TUNNEL, "v4.channel.k8s.io"].into_iter().find(|protocol| offered.iter().any(|offer| offer == protocol))
}

/// Serves the ports of a pod over SPDY, until the client leaves.
pub(crate) async fn serve<S>(connection: S)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (session, mut opened) = Session::server(connection);
    let mut errors = Vec::new();
    while let Some(stream) = opened.recv().await {
        if stream.accept().await.is_err() {
            break;
        }
        match stream.headers().get("streamtype") {
            Some("data") => drop(tokio::spawn(echo(stream))),
            // No connection fails.
            _ => {
                let (reader, writer) = stream.split();
                writer.finish().await.ok();
                errors.push((reader, writer));
            }
        }
    }
    session.ended().await;
}

/// Serves the ports of a pod over SPDY inside of WebSocket.
pub(crate) async fn serve_tunnel<S: AsyncRead + AsyncWrite>(connection: S) {
    let (input, output) = split(connection);
    tokio::pin!(input, output);
    let (mut reader, mut writer) = (Reader::new(input, Role::Server), Writer::new(output, Role::Server));
    let (inner, outer) = duplex(16 << 10);
    let session = tokio::spawn(serve(inner));
    let (mut from_session, mut to_session) = split(outer);
    let hears = async {
        while let Ok(Some(event)) = reader.next().await {
            match event {
                Event::Piece { bytes, .. } => to_session.write_all(&bytes).await.unwrap_or_default(),
                Event::Close(_) => break,
                Event::Ping(_) | Event::Pong => {}
            }
        }
        to_session.shutdown().await.ok();
    };
    let says = async {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(read @ 1..) = from_session.read(&mut buffer).await {
            let Some(bytes) = buffer.get(..read) else { break };
            if writer.send(Opcode::Binary, bytes, &[]).await.is_err() {
                break;
            }
        }
    };
    tokio::join!(hears, says);
    session.await.ok();
}

async fn echo(stream: Stream) {
    let port = stream.headers().get("port").unwrap_or_default().to_owned();
    let (mut reader, writer) = stream.split();
    let mut is_first = true;
    while let Ok(Some(bytes)) = reader.next().await {
        if std::mem::take(&mut is_first) {
            writer.write(format!("{port}:").as_bytes()).await.ok();
        }
        writer.write(&bytes).await.ok();
    }
    writer.finish().await.ok();
}

/// Serves ports over WebSocket: two channels each, for data and for an error.
pub(crate) async fn serve_websocket<S: AsyncRead + AsyncWrite>(connection: S, ports: Vec<u16>) {
    let (input, output) = split(connection);
    tokio::pin!(input, output);
    let (mut reader, mut writer) = (Reader::new(input, Role::Server), Writer::new(output, Role::Server));
    for (port, channel) in ports.iter().zip((0_u8..).step_by(2)) {
        for channel in [channel, channel + 1] {
            writer.send(Opcode::Binary, &[channel], &port.to_le_bytes()).await.ok();
        }
    }
    let (mut channel, mut heard) = (0_u8, vec![false; ports.len()]);
    while let Ok(Some(event)) = reader.next().await {
        match event {
            Event::Piece { is_first, mut bytes, .. } if !bytes.is_empty() => {
                if is_first {
                    channel = bytes.split_to(1).first().copied().unwrap_or_default();
                }
                let place = usize::from(channel / 2);
                let (Some(port), Some(heard)) = (ports.get(place), heard.get_mut(place)) else { continue };
                if !std::mem::replace(heard, true) {
                    writer.send(Opcode::Binary, &[channel], format!("{port}:").as_bytes()).await.ok();
                }
                writer.send(Opcode::Binary, &[channel], &bytes).await.ok();
            }
            Event::Ping(bytes) => drop(writer.send(Opcode::Pong, &bytes, &[]).await),
            Event::Close(_) => break,
            Event::Piece { .. } | Event::Pong => {}
        }
    }
}
