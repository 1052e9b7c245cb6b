//! For tests.

use futures_util::FutureExt;
use std::future::Future;

/// What a future that waits for nothing gives.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("it waits for nothing")
}
