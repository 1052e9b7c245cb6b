//! Ends requests that take too long. Watches and streams are excepted: their handlers watch the clock.

use super::{
    Filter, Next,
    request_info::{info_of, query_of},
};
use crate::{
    request::Request,
    response::{Response, json_failure},
};
use pintle_machinery::{Status, codec::parse_duration};
use std::{sync::Arc, time::Duration};

pub(super) struct RequestTimeout {
    pub(super) limit: Duration,
}

impl Filter for RequestTimeout {
    async fn handle(self: Arc<Self>, request: Request, next: impl Next) -> Response {
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
                Err(_) => {
                    return json_failure(&Status::bad_request(
                        "invalid timeout specified in the request URL",
                    ));
                }
            }
        }
        match tokio::time::timeout(limit, next.call(request)).await {
            Ok(response) => response,
            Err(_) => {
                json_failure(&Status::timeout("request did not complete within the allotted timeout", 0))
            }
        }
    }
}
