//! Copies the bytes of an upgraded connection in both directions.

use crate::throttled::Throttled;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use std::{
    any::Any,
    fmt, io,
    pin::{Pin, pin},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split},
    sync::watch,
};

/// The buffer of each direction, in bytes: what several TLS records bring is written at once. A side that does not read
/// stops the other one from sending.
const BUFFER_BYTES: usize = 64 << 10;
/// The buffer of a direction on which little has come: most streams are idle most of the time.
const IDLE_BUFFER_BYTES: usize = 512;
/// How long the second direction may go on after the first has ended.
const HALF_CLOSED_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection that was upgraded.
pub type Connection = TokioIo<Upgraded>;

/// Carries what a client and a backend send each other, until one of them has ended.
pub type Carry =
    fn(Connection, Throttled<Connection>) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// The life of a tunnel.
#[derive(Default)]
pub struct TunnelLife {
    /// The translation of the tunnel's content, for a client and a backend that speak different protocols. `None` copies
    /// the bytes.
    pub carry: Option<Carry>,
    /// Becomes true when the server stops: the tunnel ends. `None` for a server that never stops.
    pub stopping: Option<watch::Receiver<bool>>,
    /// Dropped when the tunnel has ended, such as its part in a count of connections.
    pub guard: Option<Box<dyn Any + Send + Sync>>,
}

impl fmt::Debug for TunnelLife {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunnelLife").field("stopping", &self.stopping).finish_non_exhaustive()
    }
}

impl TunnelLife {
    /// Runs what the connection has become, until it has ended or the server stops.
    pub async fn run<T>(self, running: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Option<T> {
        let TunnelLife { mut stopping, guard, .. } = self;
        let stopped = async {
            match &mut stopping {
                // The result borrows the channel and is not needed.
                Some(stopping) => drop(stopping.wait_for(|stopping| *stopping).await),
                None => std::future::pending().await,
            }
        };
        let result = tokio::select! {
            result = running => Some(result),
            () = stopped => None,
        };
        drop(guard);
        result
    }
}

/// Connects a client and a backend, until both directions have ended or the server stops.
pub(crate) async fn connect(client: Connection, backend: Throttled<Connection>, life: TunnelLife) {
    match life.carry {
        None => copy(client, backend, life).await,
        Some(carry) => {
            if let Some(Err(error)) = life.run(carry(client, backend).as_mut()).await {
                tracing::debug!(%error, "a tunnel broke");
            }
        }
    }
}

/// Copies until both directions have ended, one of them has failed, or the server stops. When one direction has ended,
/// the other one has ten seconds.
async fn copy<A, B>(client: A, backend: B, life: TunnelLife)
where
    A: AsyncRead + AsyncWrite,
    B: AsyncRead + AsyncWrite,
{
    let copied = async {
        let (from_client, to_client) = split(client);
        let (from_backend, to_backend) = split(backend);
        let (mut up, mut down) = (pin!(pump(from_client, to_backend)), pin!(pump(from_backend, to_client)));
        let rest = tokio::select! {
            first = &mut up => { first?; tokio::time::timeout(HALF_CLOSED_TIMEOUT, down).await }
            first = &mut down => { first?; tokio::time::timeout(HALF_CLOSED_TIMEOUT, up).await }
        };
        rest.unwrap_or(io::Result::Ok(()))
    };
    if let Some(Err(error)) = life.run(pin!(copied)).await {
        tracing::debug!(%error, "a tunnel broke");
    }
}

/// Copies one direction until its end, and closes the other side for writing then.
async fn pump<R: AsyncRead, W: AsyncWrite>(mut from: ReadHalf<R>, mut to: WriteHalf<W>) -> io::Result<()> {
    let mut buffer = vec![0; IDLE_BUFFER_BYTES];
    loop {
        let read = from.read(&mut buffer).await?;
        match buffer.get(..read) {
            None | Some([]) => break,
            Some(bytes) => to.write_all(bytes).await?,
        }
        to.flush().await?;
        match (read, buffer.len()) {
            (IDLE_BUFFER_BYTES, IDLE_BUFFER_BYTES) => buffer = vec![0; BUFFER_BYTES],
            (..=IDLE_BUFFER_BYTES, BUFFER_BYTES) => buffer = vec![0; IDLE_BUFFER_BYTES],
            _ => {}
        }
    }
    to.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, atomic::AtomicBool};
    use tokio::{io::duplex, time::Instant};

    fn life() -> (TunnelLife, watch::Sender<bool>, Arc<AtomicBool>) {
        let (stop, stopping) = watch::channel(false);
        let guard = Arc::new(AtomicBool::new(true));
        (
            TunnelLife { stopping: Some(stopping), guard: Some(Box::new(guard.clone())), carry: None },
            stop,
            guard,
        )
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_passes_and_the_other_direction_goes_on_for_a_while() {
        let (mut client, near) = duplex(64);
        let (far, mut backend) = duplex(64);
        let (life, _stop, guard) = life();
        let tunnel = tokio::spawn(copy(near, far, life));
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let mut question = String::new();
        backend.read_to_string(&mut question).await.unwrap();
        assert_eq!(question, "question");
        backend.write_all(b"answer").await.unwrap();
        let mut answer = [0; 6];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"answer");
        // The backend keeps its side open for ever.
        let begun = Instant::now();
        assert_eq!(client.read(&mut answer).await.unwrap(), 0);
        assert!(begun.elapsed() <= HALF_CLOSED_TIMEOUT);
        tunnel.await.unwrap();
        assert_eq!(Arc::strong_count(&guard), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_side_that_does_not_read_stops_the_other_side() {
        let (mut client, near) = duplex(1024);
        let (far, _backend) = duplex(1024);
        let (life, stop, guard) = life();
        let tunnel = tokio::spawn(copy(near, far, life));
        let mut written = 0;
        while let Ok(count) = tokio::time::timeout(Duration::from_secs(1), client.write(&[0; 1024])).await {
            written += count.unwrap();
        }
        assert!(written <= BUFFER_BYTES + 3 * 1024, "{written}");
        assert_eq!(Arc::strong_count(&guard), 2);
        // The server stops.
        stop.send_replace(true);
        tunnel.await.unwrap();
        assert_eq!(Arc::strong_count(&guard), 1);
        assert!(client.write_all(&[0; 4096]).await.is_err());
    }
}
