//! Ends requests at their timeout, which includes sending the response. Watches and streams are exempt: their handlers
//! have their own time limits.
//!
//! A write that was started is [finished](Finish), also after its timeout and when its client is gone.

use super::{
    audit,
    filter::{Filter, Rest},
};
use crate::base::{
    body::RequestBody,
    client::Client,
    deadline::{RequestDeadline, SendDeadline},
    finish::{CountLate, Finish},
    request::{Request, info_of, query_of},
    response::{Answered, Response, Terminated, negotiated_failure, text},
};
use crate::metrics::{LateEnd, LateHandler, Metrics};
use http::Method;
use pintle_audit::{Auditor, ResponseStatus};
use pintle_go_forms::parse_duration;
use pintle_machinery::Status;
use pintle_offload::scope;
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};

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
        let is_read = is_read(request.method());
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

/// Whether requests of a method write nothing.
pub(super) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// The response to a request over its time. The reference writes this `Status` without its type, and says that it is text.
fn timed_out() -> Response {
    let status = Status::allotted_timeout();
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
    Finish::new(work, CountLate(metrics)).await
}
