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
    deadline::{RequestDeadline, SendDeadline},
    offload,
    request::{Request, info_of, query_of},
    response::{Response, json_failure},
};
use http::Method;
use pintle_audit::Auditor;
use pintle_go_forms::parse_duration;
use pintle_machinery::Status;
use std::{panic::resume_unwind, sync::Arc, time::Duration};
use tokio::{sync::watch, time::Instant};

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

/// Reports whether the client of a write still waits: a queued write whose client is gone need not continue.
#[derive(Clone)]
pub(super) struct Client(watch::Receiver<()>);

impl Client {
    /// Completes when the client is gone.
    pub(super) async fn gone(mut self) {
        // Nothing is ever sent: the channel closes when the future of the response is dropped.
        while self.0.changed().await.is_ok() {}
    }
}

/// Answers a read; it is cancelled when its client is gone.
fn read(next: Rest, request: Request) -> impl Future<Output = Response> + Send {
    offload::scope(async move { next.call(request).await })
}

/// Answers a write on a task of its own, which continues when its client is gone.
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
