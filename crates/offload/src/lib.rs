//! Keeps the work of large requests off the runtime's workers.
//!
//! The work of a request is bounded by the bytes that it sends and reads. Small requests run on the runtime's workers.
//! A request that handles more than [`LIGHT`] bytes calls [`weigh`]; from then on [`scope`] polls it on a thread beside
//! the workers. There are as many of these threads as cores, so that a worker is always free for other requests, and
//! the kernel shares the cores between workers and large requests. Those who send large requests take turns on them (see
//! [`belongs_to`]).
//!
//! A large request stays on one of these threads until it ends. Its trees, which take most of the server's allocations,
//! are then allocated and freed on few threads, and an idle thread returns free memory to the system (see
//! [`when_idle`]).
//!
//! Work whose length is not known from its size, such as the evaluation of an expression, is begun with a small limit; a
//! request that reaches it calls [`leave_worker`] and begins again. Work of many short steps calls [`Pace::breathe`]
//! between them.

mod pace;
mod threads;
mod turns;

use std::{
    cell::Cell,
    future::poll_fn,
    hash::{BuildHasher, Hash, RandomState},
    pin::Pin,
    sync::LazyLock,
    task::Poll,
};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task_local,
};

pub use pace::Pace;
pub use threads::when_idle;

/// The bytes that a request may handle on a worker: at most a millisecond of work.
pub const LIGHT: usize = 64 * 1024;

task_local! {
    static REQUEST: Request;
}

#[derive(Default)]
struct Request {
    /// Whether it handles more than [`LIGHT`] bytes.
    is_heavy: Cell<bool>,
    /// Whose it is; 0 for nobody's.
    party: Cell<u64>,
}

/// Runs the work of a request; moves it off the workers when it calls [`weigh`] with more than [`LIGHT`] bytes.
///
/// # Panics
/// When the work panics.
pub fn scope<F>(work: F) -> impl Future<Output = F::Output> + Send
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    REQUEST.scope(Request::default(), run(Box::pin(work)))
}

/// Declares whose request it is, before it weighs anything: a request of one party waits for one of each other party at
/// most, however many they send. Outside of [`scope`] it does nothing.
pub fn belongs_to(party: impl Hash) {
    // Strangers cannot choose a name with the number of another one.
    static NUMBERS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let _ = REQUEST.try_with(|request| request.party.set(NUMBERS.hash_one(party)));
}

async fn run<F>(mut work: Pin<Box<F>>) -> F::Output
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let light = poll_fn(|context| match REQUEST.with(|request| request.is_heavy.get()) {
        false => work.as_mut().poll(context).map(Some),
        true => Poll::Ready(None),
    });
    if let Some(output) = light.await {
        return output;
    }
    match has_workers() {
        true => Box::pin(threads::run(party(), work)).await,
        false => work.await,
    }
}

/// Declares that the request is about to handle `bytes` bytes at once. Outside of [`scope`] it does nothing.
pub async fn weigh(bytes: usize) {
    if bytes > LIGHT && REQUEST.try_with(|request| !request.is_heavy.replace(true)).unwrap_or(false) {
        // The next poll runs on the other thread.
        tokio::task::yield_now().await;
    }
}

/// Whether the request is polled by a worker, and would leave it by [`leave_worker`].
pub fn is_on_worker() -> bool {
    REQUEST.try_with(|request| !request.is_heavy.get()).unwrap_or(false)
}

/// Moves the request off the workers before long work of unknown size. Outside of [`scope`] it does nothing.
pub async fn leave_worker() {
    weigh(usize::MAX).await;
}

/// Runs a large piece of work on a thread beside the workers; without a multi-threaded runtime, on the caller's thread.
///
/// # Panics
/// When the work panics.
pub async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match has_workers() {
        true => threads::run(party(), Box::pin(async move { work() })).await,
        false => work(),
    }
}

/// The party of the request, or nobody.
fn party() -> u64 {
    REQUEST.try_with(|request| request.party.get()).unwrap_or_default()
}

/// Whether this is a multi-threaded runtime, whose other workers run while this one computes.
fn has_workers() -> bool {
    Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// Runs work on the current thread that is too long for a worker: a multi-threaded runtime moves its other tasks to
/// another thread meanwhile.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    match has_workers() {
        #[expect(
            clippy::disallowed_methods,
            reason = "the work ends by itself, and waits at most for the same work of another thread"
        )]
        true => tokio::task::block_in_place(work),
        false => work(),
    }
}

#[cfg(test)]
mod tests;
