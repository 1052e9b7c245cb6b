//! Bounds how many requests are served at once; over the bound the answer is 429. Long-running requests do not count,
//! and neither do those of `system:masters`.

use super::{Filter, Next, authorization::user_of, request_info::info_of};
use crate::{
    request::Request,
    response::{Response, json_failure},
};
use pintle_machinery::{Status, user::SYSTEM_MASTERS};
use std::sync::Arc;
use tokio::sync::Semaphore;

pub(super) struct MaxInFlight {
    reads: Option<Semaphore>,
    writes: Option<Semaphore>,
}

impl MaxInFlight {
    /// Limits of so many reads and writes; zero is no limit.
    pub(super) fn new(reads: usize, writes: usize) -> MaxInFlight {
        let semaphore =
            |limit: usize| (limit > 0).then(|| Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
        MaxInFlight { reads: semaphore(reads), writes: semaphore(writes) }
    }
}

impl Filter for MaxInFlight {
    async fn handle(self: Arc<Self>, request: Request, next: impl Next) -> Response {
        let info = info_of(&request);
        if info.is_long_running() || user_of(&request).is_member_of(SYSTEM_MASTERS) {
            return next.call(request).await;
        }
        let reads = matches!(info.verb.as_str(), "get" | "list" | "watch");
        let permits = if reads { &self.reads } else { &self.writes };
        let Some(permits) = permits else { return next.call(request).await };
        let Ok(_permit) = permits.try_acquire() else {
            return json_failure(&Status::too_many_requests("Too many requests, please try again later.", 1));
        };
        next.call(request).await
    }
}
