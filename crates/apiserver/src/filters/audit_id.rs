//! Gives each request an audit id, which its answer has too, whoever answers
//! (<https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/>).

use super::{Filter, Rest};
use crate::{request::Request, response::Response};
use http::{HeaderName, HeaderValue};
use jiff::Timestamp;

pub(super) struct AuditId;

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// The id of a request, which a client may choose, and when the request came in.
#[derive(Clone)]
pub(super) struct Arrival {
    pub(super) audit_id: HeaderValue,
    pub(super) received: Timestamp,
}

impl Filter for AuditId {
    async fn handle(&self, mut request: Request, next: &Rest) -> Response {
        let own = request.headers().get(&AUDIT_ID).filter(|id| !id.is_empty()).cloned();
        let audit_id = own.unwrap_or_else(new_id);
        let arrival = Arrival { audit_id: audit_id.clone(), received: Timestamp::now() };
        request.extensions_mut().insert(arrival);
        let mut response = next.call(request).await;
        // Who answers for another server has that server's id, which is the same.
        response.headers_mut().entry(AUDIT_ID).or_insert(audit_id);
        response
    }
}

fn new_id() -> HeaderValue {
    let mut buffer = uuid::Uuid::encode_buffer();
    let text: &str = uuid::Uuid::new_v4().hyphenated().encode_lower(&mut buffer);
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("unknown"))
}
