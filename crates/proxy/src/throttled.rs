//! Limits the throughput of a connection.

use std::{
    io,
    num::NonZeroU64,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

/// The length of the intervals in which bytes are counted. It is longer where less than a byte may pass in it.
const INTERVAL: Duration = Duration::from_millis(100);

/// A connection on which each direction passes at most a number of bytes per second. Without a limit it is the connection.
///
/// An interval in which nothing passes is lost: it does not let more bytes pass later.
#[derive(Debug)]
pub struct Throttled<S> {
    connection: S,
    read: Option<Budget>,
    written: Option<Budget>,
}

impl<S> Throttled<S> {
    /// Limits each direction of a connection to this number of bytes per second.
    pub fn new(connection: S, bytes_per_second: Option<NonZeroU64>) -> Throttled<S> {
        let budget = || bytes_per_second.map(Budget::new);
        Throttled { connection, read: budget(), written: budget() }
    }
}

/// The bytes that may pass in the current interval.
#[derive(Debug)]
struct Budget {
    interval: Duration,
    /// The bytes of a whole interval.
    bytes: usize,
    /// The bytes that are left of the current one.
    left: usize,
    /// The end of the current interval; `None` before the first byte.
    end: Option<Pin<Box<Sleep>>>,
}

impl Budget {
    fn new(bytes_per_second: NonZeroU64) -> Budget {
        let bytes = usize::try_from(bytes_per_second.get() / 10).unwrap_or(usize::MAX);
        let interval = match bytes {
            0 => Duration::from_secs(1) / u32::try_from(bytes_per_second.get()).unwrap_or(u32::MAX),
            _ => INTERVAL,
        };
        Budget { interval, bytes: bytes.max(1), left: 0, end: None }
    }

    /// Waits until a byte may pass; returns how many may.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<usize> {
        if let Some(end) = &mut self.end {
            let is_over = match self.left {
                0 => {
                    ready!(end.as_mut().poll(context));
                    true
                }
                _ => end.deadline() <= Instant::now(),
            };
            if !is_over {
                return Poll::Ready(self.left);
            }
        }
        self.left = self.bytes;
        let next = Instant::now() + self.interval;
        match &mut self.end {
            Some(end) => end.as_mut().reset(next),
            None => self.end = Some(Box::pin(sleep_until(next))),
        }
        Poll::Ready(self.left)
    }

    fn spend(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Throttled<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let Some(budget) = &mut this.read else {
            return Pin::new(&mut this.connection).poll_read(context, buffer);
        };
        let allowed = ready!(budget.poll(context)).min(buffer.remaining());
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(allowed));
        ready!(Pin::new(&mut this.connection).poll_read(context, &mut part))?;
        let read = part.filled().len();
        budget.spend(read);
        buffer.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Throttled<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let Some(budget) = &mut this.written else {
            return Pin::new(&mut this.connection).poll_write(context, bytes);
        };
        let allowed = ready!(budget.poll(context)).min(bytes.len());
        let part = bytes.get(..allowed).unwrap_or_default();
        let written = ready!(Pin::new(&mut this.connection).poll_write(context, part))?;
        budget.spend(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().connection).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().connection).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    /// How long it takes until all bytes have passed in a direction, at a limit.
    async fn time_of(bytes: usize, limit: u64, is_write: bool) -> Duration {
        let (near, mut far) = duplex(bytes);
        let mut near = Throttled::new(near, NonZeroU64::new(limit));
        let (sent, mut received) = (vec![7; bytes], vec![0; bytes]);
        let begun = Instant::now();
        match is_write {
            true => {
                near.write_all(&sent).await.unwrap();
                far.read_exact(&mut received).await.unwrap();
            }
            false => {
                far.write_all(&sent).await.unwrap();
                near.read_exact(&mut received).await.unwrap();
            }
        }
        assert_eq!(sent, received);
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn each_direction_has_the_limit() {
        for is_write in [true, false] {
            assert_eq!(time_of(5000, 0, is_write).await, Duration::ZERO);
            // The last interval need not be over.
            let check = async |bytes: usize, limit: u64, expected: Duration| {
                let time = time_of(bytes, limit, is_write).await;
                let rounded = Duration::from_millis(10);
                assert!(time + rounded >= expected && time <= expected + INTERVAL + rounded, "{time:?}");
            };
            check(5000, 1000, Duration::from_millis(4900)).await;
            check(1, 1000, Duration::ZERO).await;
            check(3, 2, Duration::from_secs(1)).await;
            check(1_000_000, u64::MAX, Duration::ZERO).await;
        }
    }
}
