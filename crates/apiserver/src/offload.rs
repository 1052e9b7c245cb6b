//! Keeps the work of large requests off the runtime's workers.
//!
//! What a request computes is bounded by the size of what it sends and reads. Small requests run where they are. A
//! request that turns out to handle more than [`LIGHT`] bytes says so with [`weigh`]; from then on [`scope`] polls it on
//! a thread beside the workers. There are as many of these threads as the machine has cores, so that a worker is always
//! there for others, and the kernel shares the cores between them and the large requests.
//!
//! A large request stays on one of these threads until it ends. Its trees, which take most of what the server allocates,
//! are then made and freed in few places, and once a thread has nothing to do it returns what is free to the system (see
//! [`when_idle`]).

mod threads;

use std::{cell::Cell, future::poll_fn, task::Poll};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task_local,
};

pub use threads::when_idle;

/// How many bytes are handled on a worker: a millisecond's work at most.
pub const LIGHT: usize = 64 * 1024;

task_local! {
    /// Whether the request handles more than [`LIGHT`] bytes.
    static HEAVY: Cell<bool>;
}

/// Runs the work of a request, beside the workers as soon as it calls [`weigh`] with more than [`LIGHT`] bytes.
///
/// # Panics
/// When the work does.
pub async fn scope<F>(work: F) -> F::Output
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    HEAVY.scope(Cell::new(false), run(work)).await
}

async fn run<F>(work: F) -> F::Output
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let mut work = Box::pin(work);
    let light = poll_fn(|context| match HEAVY.with(Cell::get) {
        false => work.as_mut().poll(context).map(Some),
        true => Poll::Ready(None),
    });
    if let Some(output) = light.await {
        return output;
    }
    match has_workers() {
        true => threads::run(work).await,
        false => work.await,
    }
}

/// Says that the request handles so many bytes at once. Outside of [`scope`] it does nothing.
pub async fn weigh(bytes: usize) {
    if bytes > LIGHT && HEAVY.try_with(|heavy| !heavy.replace(true)).unwrap_or(false) {
        // What follows is for the next poll.
        tokio::task::yield_now().await;
    }
}

/// Runs a piece of work that is not small on a thread beside the workers.
///
/// # Panics
/// When the work does.
pub async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match has_workers() {
        true => threads::run(Box::pin(async move { work() })).await,
        false => work(),
    }
}

/// Whether others can run while a thread of the runtime computes.
fn has_workers() -> bool {
    Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// Does work that takes longer than others should wait for a thread of the runtime, which gets another one for as long,
/// if it has several.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    match has_workers() {
        #[expect(clippy::disallowed_methods, reason = "the work ends by itself and waits for nothing")]
        true => tokio::task::block_in_place(work),
        false => work(),
    }
}

#[cfg(test)]
mod tests;
