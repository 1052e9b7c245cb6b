//! One connection: how long it may be open, and when it is enough.
//!
//! ```text
//! open ──(requests)──> open ──(idle | stop | go away)──> draining ──(last answer sent)──> closed
//!   └────────────────────────(abuse)────────────────────────────────────────────────────────┘
//! ```

use http_body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// How long a connection without requests stays open: as long as Go's clients keep theirs.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// How many requests a client may give up in each second, in the long run. Clients do so when they lose interest, as
/// informers that end; whoever does it for its own sake does nothing else.
const RESETS_PER_SECOND: f64 = 50.0;

/// The connection that a request came by: lets who handles the request have it closed. Kept in the request's extensions;
/// clones are the same connection.
#[derive(Clone)]
pub struct ConnectionHandle(Arc<State>);

struct State {
    /// Requests whose answers are not sent yet, bodies included.
    active: AtomicUsize,
    idle_since: Mutex<Instant>,
    resets: Mutex<Resets>,
    reset_limit: f64,
    wake: Notify,
    goes_away: AtomicBool,
    is_abused: AtomicBool,
}

/// A bucket that leaks.
struct Resets {
    level: f64,
    at: Instant,
}

impl ConnectionHandle {
    /// A connection on which so many requests at once may be given up.
    pub(super) fn new(reset_limit: u32) -> ConnectionHandle {
        ConnectionHandle(Arc::new(State {
            active: AtomicUsize::new(0),
            idle_since: Mutex::new(Instant::now()),
            resets: Mutex::new(Resets { level: 0.0, at: Instant::now() }),
            reset_limit: f64::from(reset_limit),
            wake: Notify::new(),
            goes_away: AtomicBool::new(false),
            is_abused: AtomicBool::new(false),
        }))
    }

    /// Closes the connection when the answers to its requests are sent; tells the client so at once, which opens another
    /// one for what it asks next.
    pub fn go_away(&self) {
        if !self.0.goes_away.swap(true, Ordering::Relaxed) {
            self.0.wake.notify_one();
        }
    }

    /// Counts a request until it is answered.
    pub(super) fn begin(&self) -> ActiveRequest {
        self.0.active.fetch_add(1, Ordering::Relaxed);
        ActiveRequest { connection: self.clone(), is_answered: false }
    }

    /// Waits until the connection is to end, and says how. Cancel safe: what was said stays said.
    pub(super) async fn end(&self) -> End {
        let state = &self.0;
        loop {
            if state.is_abused.load(Ordering::Relaxed) {
                return End::Abuse;
            }
            if state.goes_away.load(Ordering::Relaxed) {
                return End::GoAway;
            }
            let idle_since = match state.active.load(Ordering::Acquire) {
                0 => *state.idle_since.lock(),
                _ => Instant::now(),
            };
            let deadline = idle_since + IDLE_TIMEOUT;
            if Instant::now() >= deadline {
                return End::GoAway;
            }
            tokio::select! {
                () = state.wake.notified() => {}
                () = tokio::time::sleep_until(deadline) => {}
            }
        }
    }

    /// Waits until the client overdoes it. For a connection that ends already.
    pub(super) async fn abused(&self) {
        while !self.0.is_abused.load(Ordering::Relaxed) {
            self.0.wake.notified().await;
        }
    }

    fn reset(&self) {
        let mut resets = self.0.resets.lock();
        let now = Instant::now();
        let leaked = now.duration_since(resets.at).as_secs_f64() * RESETS_PER_SECOND;
        *resets = Resets { level: (resets.level - leaked).max(0.0) + 1.0, at: now };
        if resets.level > self.0.reset_limit && !self.0.is_abused.swap(true, Ordering::Relaxed) {
            self.0.wake.notify_one();
        }
    }
}

/// How a connection is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// When its requests are answered.
    GoAway,
    /// At once.
    Abuse,
}

/// A request that is not answered yet. Dropped before there is an answer, it was given up by the client.
pub(super) struct ActiveRequest {
    connection: ConnectionHandle,
    is_answered: bool,
}

impl ActiveRequest {
    /// There is an answer, whose body may take long to be sent.
    pub(super) fn answered(mut self) -> ActiveRequest {
        self.is_answered = true;
        self
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let state = &self.connection.0;
        if state.active.fetch_sub(1, Ordering::AcqRel) == 1 {
            *state.idle_since.lock() = Instant::now();
        }
        if !self.is_answered {
            self.connection.reset();
        }
    }
}

/// A body that keeps its request active until it is sent or given up.
pub(super) struct Tracked<B> {
    body: B,
    _request: ActiveRequest,
}

impl<B> Tracked<B> {
    pub(super) fn new(body: B, request: ActiveRequest) -> Tracked<B> {
        Tracked { body, _request: request }
    }
}

impl<B: HttpBody + Unpin> HttpBody for Tracked<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_when_it_is_idle_and_not_before() {
        let connection = ConnectionHandle::new(10);
        let request = connection.begin().answered();
        let ended = tokio::time::timeout(IDLE_TIMEOUT * 3, connection.end()).await;
        assert!(ended.is_err(), "a request is there");
        drop(request);
        let began = Instant::now();
        assert_eq!(connection.end().await, End::GoAway);
        assert_eq!(began.elapsed(), IDLE_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_gives_up_one_request_after_the_other_is_cut_off() {
        let connection = ConnectionHandle::new(10);
        for _ in 0..10 {
            drop(connection.begin());
        }
        // What clients do now and then is forgotten.
        for _ in 0..100 {
            tokio::time::advance(Duration::from_millis(20)).await;
            drop(connection.begin());
            drop(connection.begin().answered());
        }
        assert!(tokio::time::timeout(Duration::from_secs(1), connection.end()).await.is_err());
        for _ in 0..11 {
            drop(connection.begin());
        }
        assert_eq!(connection.end().await, End::Abuse);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_goes_away_when_it_is_told_to() {
        let connection = ConnectionHandle::new(10);
        let _request = connection.begin();
        let other = connection.clone();
        let ended = tokio::spawn(async move { other.end().await });
        tokio::task::yield_now().await;
        connection.go_away();
        assert_eq!(ended.await.unwrap(), End::GoAway);
    }
}
