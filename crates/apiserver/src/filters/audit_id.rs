//! Gives each request an audit ID and returns it in the `Audit-ID` header of every response
//! (<https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/>).

use super::filter::{Filter, Rest};
use crate::base::{
    request::Request,
    response::{Response, put_first},
};
use http::{HeaderName, HeaderValue};
use jiff::Timestamp;
use std::time::Duration;

pub(super) struct AuditId;

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// The audit ID of a request, which a client may choose, and the time when the request was received.
#[derive(Clone)]
pub(crate) struct Arrival {
    pub(crate) audit_id: HeaderValue,
    pub(super) received: Timestamp,
    /// The time that authentication took, zero before it.
    pub(super) authentication: Duration,
}

impl Filter for AuditId {
    async fn handle(&self, mut request: Request, next: &Rest) -> Response {
        let own = request.headers().get(&AUDIT_ID).filter(|id| !id.is_empty()).cloned();
        let audit_id = own.unwrap_or_else(new_id);
        let arrival = Arrival {
            audit_id: audit_id.clone(),
            received: Timestamp::now(),
            authentication: Duration::ZERO,
        };
        request.extensions_mut().insert(arrival);
        let mut response = next.call(request).await;
        // The response of an extension server has an ID as well, mostly the same one.
        put_first(response.headers_mut(), AUDIT_ID, audit_id);
        response
    }
}

fn new_id() -> HeaderValue {
    let mut buffer = uuid::Uuid::encode_buffer();
    let text: &str = uuid::Uuid::new_v4().hyphenated().encode_lower(&mut buffer);
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("unknown"))
}
