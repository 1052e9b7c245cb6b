//! Ends requests at their timeout, which includes sending the response. Watches and streams are exempt: their handlers
//! have their own time limits.
//!
//! A write that was started is finished, also after its timeout and when its client is gone: it may have allocated
//! something for an object that is not stored yet, such as an IP address, and has to keep it or release it.

use super::{
    audit,
    filter::{Filter, Rest},
};
use crate::base::{
    body::RequestBody,
    client::Client,
    deadline::{RequestDeadline, SendDeadline},
    request::{Request, info_of, query_of},
    response::{Answered, Response, Terminated, negotiated_failure, text},
};
use crate::metrics::{LateEnd, LateHandler, Metrics};
use futures_util::FutureExt;
use http::Method;
use pintle_audit::{Auditor, ResponseStatus};
use pintle_go_forms::parse_duration;
use pintle_machinery::Status;
use pintle_offload::scope;
use std::{
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    time::{Instant, timeout},
};

/// The time after which a write that goes on after its timeout is counted as pending.
const PENDING_AFTER: Duration = Duration::from_secs(300);

pub(super) struct RequestTimeout {
    pub(super) limit: Duration,
    /// Counts the handlers that go on after a timeout.
    pub(super) metrics: Arc<Metrics>,
    /// Receives the events of requests that time out.
    pub(super) auditor: Option<Arc<Auditor>>,
}

impl Filter for RequestTimeout {
    async fn handle(&self, mut request: Request, next: &Rest) -> Response {
        let info = info_of(&request);
        if info.is_long_running() {
            return next.call(request).await;
        }
        let mut limit = self.limit;
        if let Some(text) = query_of(&request).first("timeout").filter(|text| !text.is_empty()) {
            match parse_duration(text) {
                Ok(nanoseconds) if nanoseconds > 0 => {
                    limit = limit.min(Duration::from_nanos(nanoseconds.unsigned_abs()));
                }
                Ok(_) => {}
                Err(error) => {
                    let why = format!("invalid timeout specified in the request URL - {error}");
                    let outcome = ResponseStatus { message: why.clone().into(), ..ResponseStatus::default() };
                    let status = Status::bad_request(why);
                    let refuse =
                        || negotiated_failure(&status, request.headers(), query_of(&request).first("pretty"));
                    return audit::refused(self.auditor.as_ref(), &request, outcome, None, refuse).await;
                }
            }
        }
        let deadline = RequestDeadline { received: Instant::now(), limit };
        request.extensions_mut().insert(deadline);
        if let RequestBody::Incoming(body) = request.body_mut() {
            body.read_by(deadline.at());
        }
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let metrics = self.metrics.clone();
        // Pinned here, it is not moved into the timer's future.
        let answer = pin!(async move {
            match is_read {
                true => read(next.clone(), request).await,
                false => finish(next.clone(), request, metrics).await,
            }
        });
        match timeout(limit, answer).await {
            Ok(mut response) if Instant::now() < deadline.at() => {
                response.extensions_mut().insert(SendDeadline(deadline.at()));
                response
            }
            // A response at the deadline, such as that of a body that has not arrived, could not be sent any more.
            Ok(_) | Err(_) => {
                // The chain ends here: a read is cancelled, a write becomes a task.
                self.metrics.requests().went_on(LateHandler::Filter, LateEnd::Ok);
                timed_out()
            }
        }
    }
}

/// The response to a request over its time. The reference writes this `Status` without its type, and says that it is text.
fn timed_out() -> Response {
    let status = Status::timeout("request did not complete within the allotted timeout", 0);
    let body = format!(
        "{{\"metadata\":{{}},\"status\":\"Failure\",\"message\":\"{}\",\"reason\":\"Timeout\",\"details\":{{}},\"code\":504}}\n",
        // It has no character that JSON escapes.
        status.message,
    );
    let mut response = text(504, body);
    response.extensions_mut().insert(Answered::new(status));
    response.extensions_mut().insert(Terminated::TimedOut);
    response
}

/// Answers a read; it is cancelled when its client is gone.
fn read(next: Rest, request: Request) -> impl Future<Output = Response> + Send {
    scope(async move { next.call(request).await })
}

/// Answers a write. A task of its own finishes it when the response is no longer awaited.
async fn finish(next: Rest, mut request: Request, metrics: Arc<Metrics>) -> Response {
    let (_waits, client) = Client::new();
    request.extensions_mut().insert(client);
    let work = Box::pin(scope(async move { next.call(request).await }));
    Finish { work: Some((work, CountLate(metrics))) }.await
}

/// Work that is finished in any case: when this future is dropped, a task continues the work, and `late` learns its end.
///
/// A task for each write would cost more than many writes do: the runtime's workers would pass it to each other.
struct Finish<F, L>
where
    F: Future<Output: Send + 'static> + Send + 'static,
    L: Late<F::Output>,
{
    work: Option<(Pin<Box<F>>, L)>,
}

/// Learns how work ends that nobody awaits any more.
trait Late<T>: Send + Unpin + 'static {
    /// The work has gone on for minutes.
    fn pending(&self);

    /// The work has ended; `None` for a panic.
    fn ended(self, end: Option<T>);
}

/// Counts the ends of writes.
struct CountLate(Arc<Metrics>);

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
                let mut work = AssertUnwindSafe(work).catch_unwind();
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
            let mut work = Finish { work: Some((work, Sends(Some(sender)))) };
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
