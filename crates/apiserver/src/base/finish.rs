//! Work that goes on when nobody awaits it any more: that of a write.
//!
//! A write that was started is finished, also after its time and when its client is gone: it may have allocated
//! something for an object that is not stored yet, such as an IP address, and has to keep it or release it. It stores
//! nothing more, unless the store already has it.

use crate::{
    base::response::Response,
    metrics::{LateEnd, LateHandler, Metrics},
};
use futures_util::FutureExt;
use pintle_offload::scope;
use std::{
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{runtime::Handle, time::timeout};

/// The time after which a write that goes on after its timeout is counted as pending.
const PENDING_AFTER: Duration = Duration::from_secs(300);

/// Work that is finished in any case: when this future is dropped, a task continues the work, and `late` learns its end.
///
/// A task for each write would cost more than many writes do: the runtime's workers would pass it to each other.
pub(crate) struct Finish<F, L>
where
    F: Future<Output: Send + 'static> + Send + 'static,
    L: Late<F::Output>,
{
    work: Option<(Pin<Box<F>>, L)>,
}

impl<F, L> Finish<F, L>
where
    F: Future<Output: Send + 'static> + Send + 'static,
    L: Late<F::Output>,
{
    pub(crate) fn new(work: Pin<Box<F>>, late: L) -> Finish<F, L> {
        Finish { work: Some((work, late)) }
    }
}

/// Learns how work ends that nobody awaits any more.
pub(crate) trait Late<T>: Send + Unpin + 'static {
    /// The work has gone on for minutes.
    fn pending(&self);

    /// The work has ended; `None` for a panic.
    fn ended(self, end: Option<T>);
}

/// Counts the ends of writes.
pub(crate) struct CountLate(pub(crate) Arc<Metrics>);

impl Late<Response> for CountLate {
    fn pending(&self) {
        self.0.requests().went_on(LateHandler::Write, LateEnd::Pending);
    }

    fn ended(self, end: Option<Response>) {
        let end = match end {
            Some(response) if response.status().is_success() => LateEnd::Ok,
            Some(_) => LateEnd::Error,
            None => LateEnd::Panic,
        };
        self.0.requests().went_on(LateHandler::Write, end);
    }
}

impl<F, L> Future for Finish<F, L>
where
    F: Future<Output: Send + 'static> + Send + 'static,
    L: Late<F::Output>,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // Work that panics is not continued, since it is not put back.
        let Some((mut work, late)) = self.work.take() else { return Poll::Pending };
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            self.work = Some((work, late));
        }
        polled
    }
}

impl<F, L> Drop for Finish<F, L>
where
    F: Future<Output: Send + 'static> + Send + 'static,
    L: Late<F::Output>,
{
    fn drop(&mut self) {
        if let Some((work, late)) = self.work.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move {
                let mut work = AssertUnwindSafe(Box::pin(scope(work))).catch_unwind();
                let end = match timeout(PENDING_AFTER, &mut work).await {
                    Ok(end) => end,
                    Err(_) => {
                        late.pending();
                        work.await
                    }
                };
                late.ended(end.ok());
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::panic::AssertUnwindSafe;
    use tokio::{sync::oneshot, task::yield_now};

    struct Sends(Option<oneshot::Sender<Option<&'static str>>>);

    impl Late<&'static str> for Sends {
        fn pending(&self) {}

        fn ended(mut self, end: Option<&'static str>) {
            self.0.take().unwrap().send(end).unwrap();
        }
    }

    struct Nobody;

    impl<T> Late<T> for Nobody {
        fn pending(&self) {}

        fn ended(self, _end: Option<T>) {}
    }

    #[tokio::test]
    async fn the_end_of_late_work_is_told() {
        for panics in [false, true] {
            let (sender, ended) = oneshot::channel();
            let work = Box::pin(async move {
                yield_now().await;
                assert!(!panics, "as asked");
                "finished"
            });
            let mut work = Finish::new(work, Sends(Some(sender)));
            assert!((&mut work).now_or_never().is_none());
            drop(work);
            assert_eq!(ended.await, Ok((!panics).then_some("finished")));
        }
    }

    #[tokio::test]
    async fn work_is_finished_when_its_response_is_no_longer_awaited() {
        let (sender, finished) = oneshot::channel();
        let mut work = Finish {
            work: Some((
                Box::pin(async move {
                    yield_now().await;
                    sender.send("finished").unwrap();
                }),
                Nobody,
            )),
        };
        assert!((&mut work).now_or_never().is_none());
        drop(work);
        assert_eq!(finished.await, Ok("finished"));
    }

    #[tokio::test]
    async fn awaited_work_needs_no_task() {
        let task = tokio::task::id;
        let work = Finish {
            work: Some((
                Box::pin(async move {
                    yield_now().await;
                    task()
                }),
                Nobody,
            )),
        };
        let awaited = tokio::spawn(async move { (work.await, task()) }).await.unwrap();
        assert_eq!(awaited.0, awaited.1);
    }

    #[tokio::test]
    async fn work_that_panics_ends() {
        let mut work = Finish { work: Some((Box::pin(async { panic!("as asked") }), Nobody)) };
        assert!(AssertUnwindSafe(&mut work).catch_unwind().await.is_err());
        assert!(work.work.is_none());
    }
}
