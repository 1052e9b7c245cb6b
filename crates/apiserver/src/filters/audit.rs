//! Writes the audit events that the audit policy selects. Runs behind authentication, so that the user is known, and
//! before every filter that may refuse a user.
//!
//! A request has an event when it is received and one when it is answered; a long-running request also one when its
//! response starts. A streamed list counts as answered when its last piece is sent. A client that disconnects early
//! ends its request, and the last event is written then.

mod response_object;

use super::{
    audit_id::Arrival,
    filter::{Filter, Rest},
};
use crate::base::{
    body::Body,
    deadline::RequestDeadline,
    encoding::encode_status,
    negotiation::Accepted,
    peer::{RemoteAddress, source_ips},
    request::{Request, info_of, user_of},
    request_info::RequestInfo,
    response::{Answered, Deprecated, Proxied, Response, internal_error},
};
use crate::metrics::Metrics;
use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt, StreamExt};
use http::{StatusCode, header};
use pintle_audit::{
    Attributes, AuditContext, Auditor, Layer, Level, ObjectReference, RequestMetadata, ResponseStatus, Stage,
};
use pintle_auth::{authn::Remarks, authz::Verdict};
use pintle_machinery::{Status, UserInfo};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, resume_unwind},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;

pub(super) struct Audit {
    pub(super) auditor: Arc<Auditor>,
    pub(super) metrics: Arc<Metrics>,
}

impl Filter for Audit {
    async fn handle(&self, request: Request, next: &Rest) -> Response {
        let started = Instant::now();
        let info = info_of(&request);
        let Some(context) = begin(&self.auditor, &request, &info, Some(user_of(&request))) else {
            self.metrics.filters().audit.passed(started.elapsed());
            return next.call(request).await;
        };
        // Most requests have no event, and a smaller future without it.
        Box::pin(self.audited(context, &info, started, request, next)).await
    }
}

impl Audit {
    /// Passes a request on, and writes its events.
    async fn audited(
        &self,
        context: Arc<AuditContext>,
        info: &RequestInfo,
        started: Instant,
        mut request: Request,
        next: &Rest,
    ) -> Response {
        note_remarks(&context, request.extensions().get::<Arc<Remarks>>().map(|remarks| &**remarks));
        if let Some(arrival) = request.extensions().get::<Arrival>() {
            context.note_latency(Layer::Authentication, arrival.authentication);
        }
        if !context.begin().await {
            self.auditor.note_rejected();
            return internal_error(request.uri(), "failed to store audit event");
        }
        let is_api = is_api(&request, info);
        let is_long_running = info.is_long_running();
        request.extensions_mut().insert(context.clone());
        let deadline = request.extensions().get::<RequestDeadline>().map(|deadline| deadline.at());
        self.metrics.filters().audit.passed(started.elapsed());
        let mut open = Open { context: Some(context.clone()), is_long_running, is_started: false, deadline };
        let response = match AssertUnwindSafe(next.call(request)).catch_unwind().await {
            Ok(response) => response,
            Err(panic) => {
                open.context = None;
                context.set_response_status(&panicked(&*panic));
                context.process_to_end(Stage::Panic).await;
                resume_unwind(panic);
            }
        };
        let mut response = note_response(&context, response, is_api, is_long_running).await;
        if is_long_running {
            context.process_to_end(Stage::ResponseStarted).await;
            open.is_started = true;
        }
        if let Some(Deprecated { removed_release }) = response.extensions_mut().remove() {
            context.annotate("k8s.io/deprecated", "true");
            if let Some(release) = removed_release {
                context.annotate("k8s.io/removed-release", release);
            }
        }
        // The server keeps the body of an upgraded connection until that has ended.
        if response.body().is_stream() || response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return response.map(|body| body.with_end(open, Open::finish));
        }
        // The server cannot know that the client received everything, only that its own work is done.
        open.finish().await;
        response
    }
}

/// The audit context of a request; `None` when the policy does not select it.
fn begin(
    auditor: &Arc<Auditor>,
    request: &Request,
    info: &RequestInfo,
    user: Option<Arc<UserInfo>>,
) -> Option<Arc<AuditContext>> {
    let attributes = Attributes {
        user: user.as_deref(),
        verb: &info.verb,
        is_resource_request: info.is_resource_request,
        api_group: &info.api_group,
        resource: &info.resource,
        subresource: &info.subresource,
        namespace: &info.namespace,
        name: &info.name,
        path: &info.path,
    };
    auditor.begin(&attributes, || {
        let headers = request.headers();
        let arrival = request.extensions().get::<Arrival>();
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let uri = request.uri();
        RequestMetadata {
            audit_id: arrival.map(|arrival| text(&arrival.audit_id)).unwrap_or_default(),
            request_uri: uri.path_and_query().map_or_else(|| uri.path(), |uri| uri.as_str()).to_owned(),
            verb: info.verb.clone(),
            user: user.clone(),
            source_ips: source_ips(headers, request.extensions().get::<RemoteAddress>()),
            user_agent: headers.get(header::USER_AGENT).map(text).unwrap_or_default(),
            object_ref: info.is_resource_request.then(|| ObjectReference {
                resource: info.resource.clone(),
                namespace: info.namespace.clone(),
                name: info.name.clone(),
                api_group: info.api_group.clone(),
                api_version: info.api_version.clone(),
                subresource: info.subresource.clone(),
                ..ObjectReference::default()
            }),
            received: arrival.map_or_else(jiff::Timestamp::now, |arrival| arrival.received),
        }
    })
}

/// Adds an authenticator's remarks about the credentials to the event.
fn note_remarks(context: &AuditContext, remarks: Option<&Remarks>) {
    for (key, value) in remarks.iter().flat_map(|remarks| &remarks.annotations) {
        context.annotate(*key, value.clone());
    }
}

/// Writes the event of a request that is refused before this filter, such as one that failed authentication. The outcome
/// is that of the event if the client accepts no `Status`.
pub(super) async fn refused(
    auditor: Option<&Arc<Auditor>>,
    request: &Request,
    outcome: ResponseStatus,
    remarks: Option<&Remarks>,
    refuse: impl FnOnce() -> Response,
) -> Response {
    let Some(auditor) = auditor else { return refuse() };
    let info = info_of(request);
    let Some(context) = begin(auditor, request, &info, None) else { return refuse() };
    note_remarks(&context, remarks);
    let (response, is_api) = (refuse(), is_api(request, &info));
    let audited = async move {
        context.set_outcome(outcome);
        let response = note_response(&context, response, is_api, false).await;
        context.process_to_end(Stage::ResponseStarted).await;
        response
    };
    // The futures of filters hold this one, for few requests.
    Box::pin(audited).await
}

/// Adds the authorizer's decision and reason to a request's audit event.
pub(super) fn note_verdict(request: &Request, verdict: &Verdict) {
    if let Some(context) = request.extensions().get::<Arc<AuditContext>>() {
        let (decision, reason) = match (verdict.is_allowed(), verdict.error.is_empty()) {
            (true, _) => (Some("allow"), verdict.reason.clone()),
            (false, true) => (Some("forbid"), verdict.reason.clone()),
            // No authorizer decided.
            (false, false) => (None, "internal error".into()),
        };
        if let Some(decision) = decision {
            context.annotate("authorization.k8s.io/decision", decision);
        }
        context.annotate("authorization.k8s.io/reason", reason);
    }
}

/// Adds the impersonated user to a request's audit event, with the verb that allowed constrained impersonation, or "".
pub(super) fn note_impersonation(request: &Request, user: &Arc<UserInfo>, constraint: &str) {
    if let Some(context) = request.extensions().get::<Arc<AuditContext>>() {
        context.set_impersonated_user(user.clone(), constraint);
    }
}

/// Adds the time that a layer took to a request's audit event.
pub(super) fn note_latency(request: &Request, layer: Layer, took: Duration) {
    if let Some(context) = request.extensions().get::<Arc<AuditContext>>() {
        context.note_latency(layer, took);
    }
}

/// Whether a response can be an API object: of a resource or of discovery.
fn is_api(request: &Request, info: &RequestInfo) -> bool {
    let path = request.uri().path();
    info.is_resource_request
        || path.starts_with("/api/")
        || path.starts_with("/apis/")
        || path == "/api"
        || path == "/apis"
}

/// Adds the status and the object of a response to the audit event.
async fn note_response(
    context: &AuditContext,
    mut response: Response,
    is_api: bool,
    is_long_running: bool,
) -> Response {
    let code = response.status().as_u16();
    let status = response.extensions_mut().remove::<Answered>();
    // A failure in a form that was not negotiated is not recorded as an object. Outside of the API only failures are
    // objects.
    let is_object = status.is_some() || is_api && code < 400;
    if let Some(Answered(status)) = &status {
        context.set_response_status(status);
    }
    context.set_response_code(code);
    let is_stream = is_long_running && response.body().is_stream();
    let is_foreign = response.extensions().get::<Proxied>().is_some();
    if context.level() < Level::RequestResponse || !is_object || is_stream || is_foreign {
        return response;
    }
    let (head, body) = response.into_parts();
    let body = match body {
        Body::Full(bytes) => bytes.unwrap_or_default(),
        // An event holds the whole object.
        Body::Stream(frames) => frames.fold(BytesMut::new(), join).await.freeze(),
        foreign @ Body::Foreign(_) => return Response::from_parts(head, foreign),
    };
    match &status {
        Some(Answered(status)) if code >= 400 => {
            context.set_response_object(&encode_status(status, &Accepted::JSON))
        }
        _ => {
            if let Some(json) = response_object::json_of(&head.headers, &body) {
                context.set_response_object(&json);
            }
        }
    }
    let body = if body.is_empty() { Body::empty() } else { body.into() };
    Response::from_parts(head, body)
}

async fn join(mut all: BytesMut, frame: Bytes) -> BytesMut {
    all.extend_from_slice(&frame);
    all
}

/// A request in flight. Dropped before the response: the client disconnected, or the request timed out.
struct Open {
    context: Option<Arc<AuditContext>>,
    is_long_running: bool,
    is_started: bool,
    deadline: Option<Instant>,
}

impl Open {
    async fn finish(mut self) {
        if let Some(context) = self.context.take() {
            context.process_to_end(Stage::ResponseComplete).await;
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let Some(context) = self.context.take() else { return };
        if !context.has_response_status() {
            if self.is_long_running {
                context.set_outcome(ResponseStatus {
                    status: "Success".into(),
                    message: "Connection closed early".into(),
                    code: 200,
                    ..ResponseStatus::default()
                });
            } else {
                // The error that the handlers of the reference get; writes go on.
                let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
                let why = if is_late { "context deadline exceeded" } else { "context canceled" };
                let status = Status::unknown(why);
                context.set_response_status(&status);
                context.set_response_object(&encode_status(&status, &Accepted::JSON));
            }
        }
        // The audit backends stop with the runtime.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        if self.is_long_running && !self.is_started {
            drop(context.process_detached(Stage::ResponseStarted));
        }
        drop(context.process_detached(Stage::ResponseComplete));
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Status {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or_default();
    let mut status = Status::internal_error("");
    status.message = format!("APIServer panic'd: {text}");
    status.details = None;
    status
}
