//! Ends requests that take too long, the sending of their answers included. Watches and streams are excepted: their
//! handlers watch the clock.
//!
//! A write that was begun is finished, also when its time is over or its client gone: it may have taken things for an
//! object that is not stored yet, such as an address, and has to keep them or give them back.

use super::{
    Filter, Rest, audit,
    request_info::{info_of, query_of},
};
use crate::{
    body::RequestBody,
    offload,
    request::Request,
    response::{Response, json_failure},
    serving::SendDeadline,
};
use http::Method;
use pintle_audit::Auditor;
use pintle_machinery::{Status, codec::parse_duration};
use std::{panic::resume_unwind, sync::Arc, time::Duration};
use tokio::{sync::watch, time::Instant};

pub(super) struct RequestTimeout {
    pub(super) limit: Duration,
    /// Is told of requests that get no further.
    pub(super) auditor: Option<Arc<Auditor>>,
}

/// When a request has to be answered; on every request that is not long-running.
#[derive(Clone, Copy)]
pub(crate) struct RequestDeadline {
    /// When it came.
    pub(super) received: Instant,
    /// How long it may take from then on.
    pub(super) limit: Duration,
}

impl RequestDeadline {
    /// The moment.
    pub(crate) fn at(self) -> Instant {
        self.received + self.limit
    }
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
            Ok(mut response) => {
                response.extensions_mut().insert(SendDeadline(deadline.at()));
                response
            }
            Err(_) => {
                json_failure(&Status::timeout("request did not complete within the allotted timeout", 0))
            }
        }
    }
}

/// Whether anybody waits for the answer to a write: who only waits for its turn need not go on when nobody does.
#[derive(Clone)]
pub(super) struct Client(watch::Receiver<()>);

impl Client {
    /// Waits until nobody waits any more.
    pub(super) async fn gone(mut self) {
        // Nothing is ever sent: the channel ends when the future of the answer is dropped.
        while self.0.changed().await.is_ok() {}
    }
}

/// Answers a request that nobody misses when its client is gone.
fn read(next: Rest, request: Request) -> impl Future<Output = Response> + Send {
    offload::scope(async move { next.call(request).await })
}

/// Answers a request on a task of its own, which goes on when nobody waits for the answer.
async fn finish(next: Rest, mut request: Request) -> Response {
    let (_waits, client) = watch::channel(());
    request.extensions_mut().insert(Client(client));
    match tokio::spawn(offload::scope(async move { next.call(request).await })).await {
        Ok(response) => response,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(error) => json_failure(&Status::internal_error(error)),
        },
    }
}
