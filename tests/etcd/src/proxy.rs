//! Simulates network failures: a proxy on loopback.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp},
    sync::watch,
    task::JoinHandle,
};

/// The behavior of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Forwards all bytes.
    Whole,
    /// Keeps connections open and forwards nothing: packets are lost.
    Silent,
    /// Forwards the requests of clients, and no responses.
    Deaf,
    /// Closes connections, including new ones.
    Cut,
    /// Resets connections, including new ones.
    Reset,
}

/// A proxy in front of one port.
pub struct Proxy {
    address: SocketAddr,
    network: watch::Sender<Network>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// A proxy that forwards to a port on loopback.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn before(port: u16) -> io::Result<Proxy> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let network = watch::Sender::new(Network::Whole);
        let state = network.subscribe();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, port, state.clone()));
            }
        });
        Ok(Proxy { address, network, accepting })
    }

    /// The proxy's URL for clients.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes the behavior, also for open connections.
    pub fn set(&self, network: Network) {
        self.network.send_replace(network);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.network.send_replace(Network::Cut);
    }
}

async fn pass(client: TcpStream, port: u16, mut network: watch::Receiver<Network>) {
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else { return };
    for stream in [&client, &server] {
        // With delays the proxy would be slower than loopback.
        let _ = stream.set_nodelay(true);
    }
    {
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let mut ways = [
            tokio::spawn(copy(from_client, to_server, network.clone(), &[Network::Silent])),
            tokio::spawn(copy(from_server, to_client, network.clone(), &[Network::Silent, Network::Deaf])),
        ];
        let [there, back] = &mut ways;
        tokio::select! {
            _ = there => {}
            _ = back => {}
            _ = network.wait_for(|network| matches!(network, Network::Cut | Network::Reset)) => {}
        }
        for way in ways {
            way.abort();
        }
    }
}

/// Copies one direction of a connection until it ends or is cut. Copying pauses while the network is in one of the
/// states `held_by`.
async fn copy(
    mut from: tcp::OwnedReadHalf,
    mut to: tcp::OwnedWriteHalf,
    mut network: watch::Receiver<Network>,
    held_by: &'static [Network],
) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let length = from.read(&mut buffer).await?;
        // Bytes that were read before the pause are kept until the network is whole again.
        let now = network.wait_for(|network| !held_by.contains(network)).await;
        let now = now.map_or(Network::Cut, |now| *now);
        if now == Network::Reset {
            // The peer gets a reset instead of a graceful close.
            to.as_ref().set_zero_linger()?;
        }
        if length == 0 || matches!(now, Network::Cut | Network::Reset) {
            return Ok(());
        }
        to.write_all(buffer.get(..length).unwrap_or_default()).await?;
    }
}
