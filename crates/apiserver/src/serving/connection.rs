//! One connection: how long it may be open, and when it is enough.
//!
//! ```text
//! open ──(requests)──> open ──(idle | stop | go away)──> draining ──(last answer sent)──> closed
//!   └──────────────(abuse | cut off)──────────────┴──────────(not sent in time)───────────────┘
//! ```

use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// How long a connection without requests stays open: as long as Go's clients keep theirs.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// How long a connection without requests that is to be closed may take to send the rest of its answers.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
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
    is_severed: AtomicBool,
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
            is_severed: AtomicBool::new(false),
        }))
    }

    /// Closes the connection when the answers to its requests are sent; tells the client so at once, which opens another
    /// one for what it asks next.
    pub fn go_away(&self) {
        if !self.0.goes_away.swap(true, Ordering::Relaxed) {
            self.0.wake.notify_one();
        }
    }

    /// Closes the connection now.
    pub(super) fn sever(&self) {
        if !self.0.is_severed.swap(true, Ordering::Relaxed) {
            self.0.wake.notify_one();
        }
    }

    /// Since when it has had no requests; `None` while it has one.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        (self.0.active.load(Ordering::Acquire) == 0).then(|| *self.0.idle_since.lock())
    }

    /// Waits until the connection is to be closed now.
    pub(super) async fn severed(&self) {
        while !self.0.is_severed.load(Ordering::Relaxed) {
            self.0.wake.notified().await;
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
            if state.is_severed.load(Ordering::Relaxed) {
                return End::Now;
            }
            if state.goes_away.load(Ordering::Relaxed) {
                return End::GoAway;
            }
            let deadline = self.idle_since().unwrap_or_else(Instant::now) + IDLE_TIMEOUT;
            if Instant::now() >= deadline {
                return End::GoAway;
            }
            tokio::select! {
                () = state.wake.notified() => {}
                () = tokio::time::sleep_until(deadline) => {}
            }
        }
    }

    /// Waits until a connection that ends is to be closed now: it is severed, or has not sent in time what it has.
    pub(super) async fn drained(&self) {
        let state = &self.0;
        let began = Instant::now();
        while !state.is_severed.load(Ordering::Relaxed) {
            let idle_since = self.idle_since().unwrap_or_else(Instant::now);
            let deadline = idle_since.max(began) + DRAIN_TIMEOUT;
            if Instant::now() >= deadline {
                return;
            }
            tokio::select! {
                () = state.wake.notified() => {}
                () = tokio::time::sleep_until(deadline) => {}
            }
        }
    }

    fn reset(&self) {
        let mut resets = self.0.resets.lock();
        let now = Instant::now();
        let leaked = now.duration_since(resets.at).as_secs_f64() * RESETS_PER_SECOND;
        *resets = Resets { level: (resets.level - leaked).max(0.0) + 1.0, at: now };
        if resets.level > self.0.reset_limit {
            self.sever();
        }
    }
}

/// How a connection is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// When its requests are answered.
    GoAway,
    /// At once.
    Now,
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
    async fn a_connection_whose_client_takes_no_notice_of_its_end_is_closed() {
        let connection = ConnectionHandle::new(10);
        let request = connection.begin().answered();
        let drained = tokio::time::timeout(DRAIN_TIMEOUT * 3, connection.drained()).await;
        assert!(drained.is_err(), "a request is there");
        drop(request);
        let began = Instant::now();
        connection.drained().await;
        assert_eq!(began.elapsed(), DRAIN_TIMEOUT);
        let other = ConnectionHandle::new(10);
        let _request = other.begin();
        other.sever();
        other.drained().await;
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
        assert_eq!(connection.end().await, End::Now);
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
