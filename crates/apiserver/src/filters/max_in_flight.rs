//! Bounds the number of requests in flight; requests above the bound get 429. Long-running requests and those of
//! `system:masters` do not count.

use super::filter::{Filter, Rest};
use crate::base::{
    request::{Request, info_of, user_of},
    response::{Response, Terminated, text},
};
use http::{HeaderValue, header};
use pintle_machinery::user::SYSTEM_MASTERS;
use tokio::sync::Semaphore;

pub(super) struct MaxInFlight {
    reads: Option<Semaphore>,
    writes: Option<Semaphore>,
}

impl MaxInFlight {
    /// The limits of reads and writes in flight; zero means no limit.
    pub(super) fn new(reads: usize, writes: usize) -> MaxInFlight {
        let semaphore = |limit: usize| (limit > 0).then(|| Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
        MaxInFlight { reads: semaphore(reads), writes: semaphore(writes) }
    }
}

impl Filter for MaxInFlight {
    async fn handle(&self, request: Request, next: &Rest) -> Response {
        let info = info_of(&request);
        if info.is_long_running() || user_of(&request).is_member_of(SYSTEM_MASTERS) {
            return next.call(request).await;
        }
        let reads = matches!(info.verb.as_str(), "get" | "list" | "watch");
        let permits = if reads { &self.reads } else { &self.writes };
        let Some(permits) = permits else { return next.call(request).await };
        let Ok(_permit) = permits.try_acquire() else {
            return too_many_requests(1);
        };
        next.call(request).await
    }
}

/// The 429 response: plain text, unlike other failures, as kube-apiserver sends it.
pub(super) fn too_many_requests(retry_after: u64) -> Response {
    let mut response = text(429, "Too many requests, please try again later.\n");
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from(retry_after));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response.extensions_mut().insert(Terminated::Dropped);
    response
}
