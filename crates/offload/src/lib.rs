//! Keeps the work of large requests off the runtime's workers.
//!
//! The work of a request is bounded by the bytes that it sends and reads. Small requests run on the runtime's workers.
//! A request that handles more than [`LIGHT`] bytes calls [`weigh`]; from then on [`scope`] polls it on a thread beside
//! the workers. There are as many of these threads as cores, so that a worker is always free for other requests, and
//! the kernel shares the cores between workers and large requests.
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

use std::{cell::Cell, future::poll_fn, pin::Pin, task::Poll};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task_local,
};

pub use pace::Pace;
pub use threads::when_idle;

/// The bytes that a request may handle on a worker: at most a millisecond of work.
pub const LIGHT: usize = 64 * 1024;

task_local! {
    /// Whether the request handles more than [`LIGHT`] bytes.
    static HEAVY: Cell<bool>;
}

/// Runs the work of a request; moves it off the workers when it calls [`weigh`] with more than [`LIGHT`] bytes.
///
/// # Panics
/// When the work panics.
pub fn scope<F>(work: F) -> impl Future<Output = F::Output> + Send
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    HEAVY.scope(Cell::new(false), run(Box::pin(work)))
}

async fn run<F>(mut work: Pin<Box<F>>) -> F::Output
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let light = poll_fn(|context| match HEAVY.with(Cell::get) {
        false => work.as_mut().poll(context).map(Some),
        true => Poll::Ready(None),
    });
    if let Some(output) = light.await {
        return output;
    }
    match has_workers() {
        true => Box::pin(threads::run(work)).await,
        false => work.await,
    }
}

/// Declares that the request is about to handle `bytes` bytes at once. Outside of [`scope`] it does nothing.
pub async fn weigh(bytes: usize) {
    if bytes > LIGHT && HEAVY.try_with(|heavy| !heavy.replace(true)).unwrap_or(false) {
        // The next poll runs on the other thread.
        tokio::task::yield_now().await;
    }
}

/// Whether the request is polled by a worker, and would leave it by [`leave_worker`].
pub fn is_on_worker() -> bool {
    HEAVY.try_with(|heavy| !heavy.get()).unwrap_or(false)
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
        true => threads::run(Box::pin(async move { work() })).await,
        false => work(),
    }
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
