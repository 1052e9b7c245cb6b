//! Helpers for tests.

use futures_util::FutureExt;
use std::future::Future;

/// The output of a future that is ready at once.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("it waits for nothing")
}
