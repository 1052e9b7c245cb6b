//! Counts and times requests, and gives each an audit id.

use super::{
    Filter, Next,
    request_info::{info_of, query_of},
};
use crate::{metrics::Metrics, request::Request, response::Response};
use http::{HeaderName, HeaderValue};
use std::{sync::Arc, time::Instant};

pub(super) struct Instrumentation {
    pub(super) metrics: Arc<Metrics>,
}

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

impl Filter for Instrumentation {
    async fn handle(self: Arc<Self>, request: Request, next: impl Next) -> Response {
        let started = Instant::now();
        let info = info_of(&request);
        let dry_run = query_of(&request).first("dryRun").is_some();
        let audit_id = match request.headers().get(&AUDIT_ID) {
            Some(id) if id.len() <= 64 => Some(id.clone()),
            _ => HeaderValue::from_str(&uuid::Uuid::new_v4().to_string()).ok(),
        };
        let in_flight = self.metrics.in_flight(&info);
        in_flight.inc();
        let mut response = next.call(request).await;
        in_flight.dec();
        let took = started.elapsed();
        let code = response.status().as_u16();
        self.metrics.observe(&info, dry_run, code, took);
        tracing::debug!(
            verb = info.verb,
            group = info.api_group,
            resource = info.resource,
            namespace = info.namespace,
            name = info.name,
            subresource = info.subresource,
            code,
            microseconds = took.as_micros() as u64,
            "HTTP"
        );
        if let Some(id) = audit_id {
            response.headers_mut().insert(AUDIT_ID, id);
        }
        response
    }
}
