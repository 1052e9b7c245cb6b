//! Cuts off responses that their clients do not read.
//!
//! The HTTP library polls a response body only when the connection has room for more. A client that reads nothing would
//! therefore keep the body, its snapshot and its buffers for ever. [`guard`] polls the future that sends the body, the
//! HTTP/1 connection or the HTTP/2 stream, and drops it when the [`Cutoff`] says so:
//!
//! - at the response's deadline, see [`SendDeadline`];
//! - when the client has accepted nothing for [`STALL_TIMEOUT`];
//! - when the [`ResponseBudget`](crate::serving::ResponseBudget) is used up and the client is among those that
//!   read the slowest.

use crate::base::{connection::ConnectionHandle, deadline::SendDeadline};
use futures_util::task::AtomicWaker;
use hyper::rt::Executor;
use parking_lot::Mutex;
use pintle_supervisor::in_turns;
use std::{
    fmt,
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};
use tokio::time::{Instant, sleep_until};

/// How long a client may accept no bytes of a response.
pub(super) const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The error that ends a response body that is cut off.
#[derive(Debug)]
pub(crate) struct CutOff;

impl fmt::Display for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client did not read the response in time")
    }
}

impl std::error::Error for CutOff {}

/// Tracks the sending of responses on one HTTP/1 connection or one HTTP/2 stream. Clones are the same cutoff.
#[derive(Clone)]
pub(crate) struct Cutoff(Arc<State>);

struct State {
    connection: ConnectionHandle,
    progress: Mutex<Progress>,
    /// The task of [`guard`].
    task: AtomicWaker,
}

#[derive(Default)]
struct Progress {
    deadline: Option<Instant>,
    /// When the connection was last handed bytes that are not sent yet.
    stalled_since: Option<Instant>,
    /// The number of budget charges for bytes that are not sent yet.
    unsent: usize,
    /// The task that polls the body, while it waits for `unsent` to become 0.
    body: Option<Waker>,
    is_cut: bool,
    /// Whether [`guard`] has ended.
    is_over: bool,
}

impl Progress {
    fn limit(&self) -> Option<Instant> {
        let stall = self.stalled_since.map(|since| since + STALL_TIMEOUT);
        match (self.deadline, stall) {
            (Some(deadline), Some(stall)) => Some(deadline.min(stall)),
            (deadline, stall) => deadline.or(stall),
        }
    }
}

impl Cutoff {
    /// The cutoff of a connection, or of one of its streams.
    pub(super) fn new(connection: ConnectionHandle) -> Cutoff {
        let progress = Mutex::new(Progress::default());
        Cutoff(Arc::new(State { connection, progress, task: AtomicWaker::new() }))
    }

    /// Starts the tracking of a response.
    pub(super) fn begin(&self, deadline: Option<SendDeadline>) {
        self.0.progress.lock().deadline = deadline.map(|deadline| deadline.0);
    }

    /// Ends the tracking: the response's body is not polled any more.
    pub(super) fn end(&self) {
        let mut progress = self.0.progress.lock();
        progress.deadline = None;
        progress.body = None;
        if progress.unsent == 0 {
            progress.stalled_since = None;
        }
    }

    /// Records that the connection requests the next frame: it has accepted earlier frames, except for charged bytes.
    ///
    /// # Errors
    /// When the response is cut off.
    pub(crate) fn polled(&self) -> Result<(), CutOff> {
        let mut progress = self.0.progress.lock();
        if progress.unsent == 0 {
            progress.stalled_since = None;
        }
        let is_late = || progress.limit().is_some_and(|limit| limit <= Instant::now());
        if progress.is_cut || is_late() { Err(CutOff) } else { Ok(()) }
    }

    /// Records that bytes are handed to the connection.
    pub(crate) fn handed_over(&self) {
        self.0.progress.lock().stalled_since = Some(Instant::now());
    }

    /// Waits until all charged bytes are sent.
    pub(super) fn poll_sent(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut progress = self.0.progress.lock();
        if progress.unsent == 0 {
            return Poll::Ready(());
        }
        progress.body = Some(context.waker().clone());
        Poll::Pending
    }

    /// Records a charge of unsent bytes.
    pub(crate) fn charged(&self) {
        self.0.progress.lock().unsent += 1;
    }

    /// Records that charged bytes were sent or dropped.
    pub(crate) fn released(&self) {
        let mut progress = self.0.progress.lock();
        progress.unsent = progress.unsent.saturating_sub(1);
        if progress.unsent == 0 {
            progress.stalled_since = None;
            let waker = progress.body.take();
            drop(progress);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Since when the client has accepted no bytes; `None` when there are none to accept.
    pub(crate) fn stalled_since(&self) -> Option<Instant> {
        self.0.progress.lock().stalled_since
    }

    /// Cuts the response off: the stream, or the whole connection when the stream's task has ended already.
    pub(crate) fn cut(&self) {
        let mut progress = self.0.progress.lock();
        progress.is_cut = true;
        let is_over = progress.is_over;
        drop(progress);
        match is_over {
            true => self.0.connection.sever(),
            false => self.0.task.wake(),
        }
    }

    #[cfg(test)]
    pub(crate) fn for_tests() -> Cutoff {
        Cutoff::new(ConnectionHandle::new(10))
    }

    fn limit(&self) -> Limit {
        let progress = self.0.progress.lock();
        match progress.limit() {
            _ if progress.is_cut => Limit::Now,
            Some(limit) => Limit::At(limit),
            None => Limit::Never,
        }
    }
}

/// When a response is cut off, at its present progress.
enum Limit {
    Now,
    At(Instant),
    Never,
}

/// Polls a future that sends responses until it is ready; `None` when the cutoff applies first.
pub(super) async fn guard<F: Future>(cutoff: &Cutoff, future: Pin<&mut F>) -> Option<F::Output> {
    let mut future = pin!(in_turns(future));
    let mut sleep = pin!(None);
    poll_fn(|context| {
        cutoff.0.task.register(context.waker());
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        loop {
            let now = Instant::now();
            let limit = match cutoff.limit() {
                Limit::Never => return Poll::Pending,
                Limit::At(limit) if limit > now => limit,
                Limit::At(_) | Limit::Now => return Poll::Ready(None),
            };
            match sleep.as_mut().as_pin_mut() {
                None => sleep.set(Some(sleep_until(limit))),
                Some(sleep) if sleep.deadline() > limit || sleep.is_elapsed() => sleep.reset(limit),
                // The timer fires no later than the limit.
                Some(_) => {}
            }
            if let Some(sleep) = sleep.as_mut().as_pin_mut() {
                ready!(sleep.poll(context));
            }
        }
    })
    .await
}

tokio::task_local! {
    static STREAM: Cutoff;
}

/// The cutoff of the current task's HTTP/2 stream; `None` for other tasks.
pub(super) fn of_this_stream() -> Option<Cutoff> {
    STREAM.try_with(Cutoff::clone).ok()
}

/// Runs each HTTP/2 stream as a task that the cutoff can drop.
#[derive(Clone)]
pub(super) struct StreamExecutor {
    pub(super) connection: ConnectionHandle,
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let cutoff = Cutoff::new(self.connection.clone());
        let over = Over(cutoff.clone());
        // In the futures around it the stream would be moved several times.
        let mut stream = Box::pin(stream);
        tokio::spawn(STREAM.scope(cutoff, async move {
            // Dropping the stream's future resets the stream.
            drop(guard(&over.0, stream.as_mut()).await);
        }));
    }
}

/// Records, when it is dropped, that a stream's task has ended.
struct Over(Cutoff);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.0.progress.lock().is_over = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    /// How long a future that never completes is polled.
    async fn guarded(cutoff: &Cutoff) -> Option<Duration> {
        let begun = Instant::now();
        let mut future = pin!(pending::<()>());
        let guarded = tokio::time::timeout(4 * STALL_TIMEOUT, guard(cutoff, future.as_mut()));
        guarded.await.ok().map(|_| begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_is_cut_off_at_its_deadline_or_when_nothing_of_it_is_accepted() {
        let cutoff = Cutoff::for_tests();
        assert_eq!(guarded(&cutoff).await, None, "its handler is still at work");
        let second = Duration::from_secs(1);
        cutoff.begin(Some(SendDeadline(Instant::now() + second)));
        assert_eq!(guarded(&cutoff).await, Some(second));
        assert!(cutoff.polled().is_err());
        cutoff.begin(None);
        cutoff.handed_over();
        assert_eq!(guarded(&cutoff).await, Some(STALL_TIMEOUT));
        assert!(cutoff.polled().is_ok(), "what is asked for more has taken the rest");
        assert_eq!(guarded(&cutoff).await, None);
        cutoff.charged();
        cutoff.handed_over();
        tokio::time::advance(STALL_TIMEOUT).await;
        assert!(cutoff.polled().is_err(), "what is charged was not sent");
        cutoff.released();
        assert!(cutoff.polled().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_cut_takes_its_connection_along_when_its_stream_is_over() {
        let first = Cutoff::for_tests();
        first.cut();
        assert_eq!(guarded(&first).await, Some(Duration::ZERO));
        let second = Cutoff::for_tests();
        drop(Over(second.clone()));
        second.cut();
        assert_eq!(second.0.connection.end().await, crate::base::connection::End::Now);
    }
}
