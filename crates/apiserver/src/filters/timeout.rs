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
    response::{Answered, Response, Terminated, json_failure, text},
};
use http::Method;
use pintle_audit::Auditor;
use pintle_go_forms::parse_duration;
use pintle_machinery::Status;
use pintle_offload::scope;
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{runtime::Handle, time::Instant};

pub(super) struct RequestTimeout {
    pub(super) limit: Duration,
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
                    let refuse = || json_failure(&Status::bad_request(why));
                    return audit::refused(self.auditor.as_ref(), &request, refuse).await;
                }
            }
        }
        let deadline = RequestDeadline { received: Instant::now(), limit };
        request.extensions_mut().insert(deadline);
        if let RequestBody::Incoming(body) = request.body_mut() {
            body.read_by(deadline.at());
        }
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let answer = async move {
            match is_read {
                true => read(next.clone(), request).await,
                false => finish(next.clone(), request).await,
            }
        };
        match tokio::time::timeout(limit, answer).await {
            Ok(mut response) if Instant::now() < deadline.at() => {
                response.extensions_mut().insert(SendDeadline(deadline.at()));
                response
            }
            // A response at the deadline, such as that of a body that has not arrived, could not be sent any more.
            Ok(_) | Err(_) => timed_out(),
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
async fn finish(next: Rest, mut request: Request) -> Response {
    let (_waits, client) = Client::new();
    request.extensions_mut().insert(client);
    Finish(Some(Box::pin(scope(async move { next.call(request).await })))).await
}

/// Work that is finished in any case: when this future is dropped, a task continues the work.
///
/// A task for each write would cost more than many writes do: the runtime's workers would pass it to each other.
struct Finish<F>(Option<Pin<Box<F>>>)
where
    F: Future<Output: Send + 'static> + Send + 'static;

impl<F> Future for Finish<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // Work that panics is not continued, since it is not put back.
        let Some(mut work) = self.0.take() else { return Poll::Pending };
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            self.0 = Some(work);
        }
        polled
    }
}

impl<F> Drop for Finish<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn drop(&mut self) {
        if let Some(work) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::panic::AssertUnwindSafe;
    use tokio::{sync::oneshot, task::yield_now};

    #[tokio::test]
    async fn work_is_finished_when_its_response_is_no_longer_awaited() {
        let (sender, finished) = oneshot::channel();
        let mut work = Finish(Some(Box::pin(async move {
            yield_now().await;
            sender.send("finished").unwrap();
        })));
        assert!((&mut work).now_or_never().is_none());
        drop(work);
        assert_eq!(finished.await, Ok("finished"));
    }

    #[tokio::test]
    async fn awaited_work_needs_no_task() {
        let task = tokio::task::id;
        let work = Finish(Some(Box::pin(async move {
            yield_now().await;
            task()
        })));
        let awaited = tokio::spawn(async move { (work.await, task()) }).await.unwrap();
        assert_eq!(awaited.0, awaited.1);
    }

    #[tokio::test]
    async fn work_that_panics_ends() {
        let mut work = Finish(Some(Box::pin(async { panic!("as asked") })));
        assert!(AssertUnwindSafe(&mut work).catch_unwind().await.is_err());
        assert!(work.0.is_none());
    }
}
