//! Admits requests by API priority and fairness
//! (<https://kubernetes.io/docs/concepts/cluster-administration/flow-control/>).
//!
//! A request holds its seat until its response is made, and for a streamed response until it is sent; a watch holds it
//! until its initial events are delivered. A client that does not read delays either by a bounded time only. Streams to
//! nodes and pods are not limited: they are long-lived and cost the server little.

use super::{
    audit,
    filter::{Filter, Rest},
    max_in_flight::too_many_requests,
};
use crate::base::{
    client::Client,
    deadline::RequestDeadline,
    log_fields::{FlowFields, LogFields},
    query::Query,
    request::{Request, info_of, path_of, query_of, user_of},
    request_info::RequestInfo,
    response::{QueueWait, Response, put_first},
};
use crate::metrics::Metrics;
use http::{HeaderName, HeaderValue, Uri};
use parking_lot::Mutex;
use pintle_audit::Layer;
use pintle_flowcontrol::{Admission, Flow, FlowControl, HeldSeat, RegisteredWatch, RequestAttributes};
use pintle_machinery::UserInfo;
use std::{borrow::Cow, sync::Arc, time::Duration};
use tokio::time::Instant;

pub(super) struct PriorityAndFairness {
    pub(super) flow_control: Arc<FlowControl>,
    /// The timeout of requests that are not long-running.
    pub(super) request_timeout: Duration,
    pub(super) metrics: Arc<Metrics>,
}

const FLOW_SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// The longest queue wait, whatever the request's timeout.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// A request may wait in the queue for one part in this many of its remaining time.
const WAIT_PART: u32 = 4;

/// How long a seat is held while a response or the initial events of a watch are sent. A client that does not read
/// costs the server little, and must not keep the seat from other requests.
const MAX_SENDING: Duration = Duration::from_secs(1);

/// The time in which a request is admitted that need not wait.
const SHORT_WAIT: Duration = Duration::from_millis(1);

impl Filter for PriorityAndFairness {
    async fn handle(&self, mut request: Request, next: &Rest) -> Response {
        let info = info_of(&request);
        let is_watch = info.verb == "watch";
        if info.is_long_running() && !is_watch {
            return next.call(request).await;
        }
        let attributes = Arc::new(Attributes::of(&request, info));
        let deadline = request.extensions().get::<RequestDeadline>().copied();
        let deadline =
            deadline.unwrap_or(RequestDeadline { received: Instant::now(), limit: self.request_timeout });
        let patience = (deadline.limit / WAIT_PART).min(MAX_WAIT).saturating_sub(deadline.received.elapsed());
        let arrived = Instant::now();
        let admit = self.flow_control.admit(attributes.clone(), patience);
        let admission = match request.extensions().get::<Client>().cloned() {
            None => admit.await,
            Some(client) => tokio::select! {
                biased;
                admission = admit => admission,
                // The request leaves its queue: its client is gone, and nothing reads this response.
                () = client.gone() => return too_many_requests(1),
            },
        };
        let waited = arrived.elapsed();
        self.metrics.filters().priority_and_fairness.passed(waited);
        if waited > SHORT_WAIT {
            audit::note_latency(&request, Layer::QueueWait, waited);
        }
        let log = request.extensions().get::<LogFields>().cloned();
        let log = log.map(|log| Log { fields: fields_of(&admission), log });
        let executed = Executed { log, started: Instant::now(), is_refused: admission.seat.is_err() };
        let seat = match admission.seat {
            Ok(seat) => seat,
            Err(refusal) => return with_headers(too_many_requests(refusal.retry_after), &admission.flow),
        };
        let response = match is_watch {
            true => {
                let ticket = WatchTicket {
                    seat: Mutex::new(Some(seat.hold(MAX_SENDING))),
                    _registered: self.flow_control.register_watch(&*attributes),
                };
                request.extensions_mut().insert(Arc::new(ticket));
                next.call(request).await
            }
            false => {
                let response = next.call(request).await;
                match response.body().is_stream() {
                    false => response,
                    true => {
                        let held = seat.hold(MAX_SENDING);
                        response.map(|body| body.with_guard(held))
                    }
                }
            }
        };
        drop(executed);
        let mut response = with_headers(response, &admission.flow);
        if waited > SHORT_WAIT {
            response.extensions_mut().insert(QueueWait(waited));
        }
        response
    }
}

/// The names of flow schemas and priority levels are cut to this number of bytes in the log.
const MAX_LOGGED: usize = 64;

fn fields_of(admission: &Admission) -> FlowFields {
    let cut = |name: &str| name.get(..MAX_LOGGED).unwrap_or(name).to_owned();
    FlowFields {
        priority_level: cut(admission.flow.level_name()),
        flow_schema: cut(admission.flow.schema_name()),
        initial_seats: admission.estimate.initial_seats,
        final_seats: admission.estimate.final_seats,
        additional_latency: admission.estimate.additional_latency,
        execution_time: None,
    }
}

/// Tells the log entry of a request how it was admitted, and for how long it was served.
struct Executed {
    log: Option<Log>,
    started: Instant,
    is_refused: bool,
}

struct Log {
    fields: FlowFields,
    log: LogFields,
}

impl Drop for Executed {
    fn drop(&mut self) {
        let Some(Log { fields, log }) = self.log.take() else { return };
        let execution_time = (!self.is_refused).then(|| self.started.elapsed());
        log.set(FlowFields { execution_time, ..fields });
    }
}

/// A watch's part in flow control: its seat until initialization, and its registration as a watcher that writes are
/// charged for, until this is dropped. An extension of the request.
pub(crate) struct WatchTicket {
    seat: Mutex<Option<HeldSeat>>,
    _registered: Option<RegisteredWatch>,
}

impl WatchTicket {
    /// Releases the seat: the watch is initialized.
    pub(crate) fn initialized(&self) {
        let seat = self.seat.lock().take();
        drop(seat);
    }
}

/// Adds the UIDs of the flow schema and the priority level. Their names would disclose the classification to clients.
fn with_headers(mut response: Response, flow: &Flow) -> Response {
    for (name, uid) in [(FLOW_SCHEMA_UID, flow.schema_uid()), (PRIORITY_LEVEL_UID, flow.level_uid())] {
        if let Ok(uid) = HeaderValue::from_str(uid) {
            put_first(response.headers_mut(), name, uid);
        }
    }
    response
}

/// The attributes of a request for flow control; they outlive the request.
struct Attributes {
    info: Arc<RequestInfo>,
    query: Arc<Query>,
    user: Arc<UserInfo>,
    uri: Uri,
    /// The decoded path, where it differs from the path in the URI.
    decoded: Option<String>,
}

impl Attributes {
    fn of(request: &Request, info: Arc<RequestInfo>) -> Attributes {
        let uri = request.uri().clone();
        let decoded = match path_of(&uri) {
            Cow::Borrowed(_) => None,
            Cow::Owned(path) => Some(path),
        };
        Attributes { info, query: query_of(request), user: user_of(request), uri, decoded }
    }
}

impl RequestAttributes for Attributes {
    fn user(&self) -> &UserInfo {
        &self.user
    }

    fn verb(&self) -> &str {
        &self.info.verb
    }

    fn path(&self) -> &str {
        self.decoded.as_deref().unwrap_or(self.uri.path())
    }

    fn is_resource_request(&self) -> bool {
        self.info.is_resource_request
    }

    fn api_group(&self) -> &str {
        &self.info.api_group
    }

    fn api_version(&self) -> &str {
        &self.info.api_version
    }

    fn resource(&self) -> &str {
        &self.info.resource
    }

    fn subresource(&self) -> &str {
        &self.info.subresource
    }

    fn namespace(&self) -> &str {
        &self.info.namespace
    }

    fn name(&self) -> &str {
        &self.info.name
    }

    fn query(&self, parameter: &str) -> Option<&str> {
        self.query.first(parameter)
    }
}
