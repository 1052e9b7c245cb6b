//! Counts, times and logs requests.
//!
//! A response that is streamed is recorded when it has been sent, like in kube-apiserver, whose handlers write it.

use super::{
    Arrival,
    filter::{Filter, Rest},
    timeout::is_read,
};
use crate::{
    base::{
        body::Body,
        log_fields::LogFields,
        peer::RemoteAddress,
        query::Query,
        request::{Request, info_of, query_of},
        request_info::RequestInfo,
        response::{Measured, QueueWait, Response, Served, Terminated},
        route_slot::RouteSlot,
    },
    metrics::{LateEnd, LateHandler, Metrics, RequestLabels, RequestVerb, RouteSeries},
};
use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderValue, Method, StatusCode, header};
use http_body::Body as _;
use pintle_go_forms::format_duration;
use pintle_machinery::options::FieldValidation;
use prometheus::IntGauge;
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

pub(super) struct Instrumentation {
    pub(super) metrics: Arc<Metrics>,
}

/// Counts a request as in flight until it is dropped, however the request ends.
struct InFlight(IntGauge);

impl InFlight {
    fn new(gauge: IntGauge) -> InFlight {
        gauge.inc();
        InFlight(gauge)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Counts a request whose handler panics, or is dropped because its client is gone.
struct Running<'a> {
    instrumentation: &'a Instrumentation,
    request: Described<'a>,
    has_response: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let Running { instrumentation: Instrumentation { metrics }, request, has_response } = self;
        if std::thread::panicking() {
            metrics.requests().aborted(&RequestLabels::of_refused(request.method, request.info));
        } else if !*has_response && !request.info.is_long_running() {
            metrics.requests().went_on(LateHandler::Filter, LateEnd::Ok);
            request.record_given_up(metrics);
        }
    }
}

/// The properties of a request that metrics record.
#[derive(Clone, Copy)]
struct Described<'a> {
    method: &'a Method,
    info: &'a RequestInfo,
    query: &'a Query,
    route: &'a RouteSlot,
    started: Instant,
}

impl Described<'_> {
    /// Records a request without a response of its handler: its time is over, or its client gone.
    fn record_given_up(&self, metrics: &Metrics) {
        const TIMEOUT: u16 = 504;
        let requests = metrics.requests();
        let Some(series) = self.route.series() else {
            return requests.terminated(&RequestLabels::of_refused(self.method, self.info), TIMEOUT);
        };
        // The handlers of the reference find that their time is over: those of writes tell so, and to others it is a
        // failure like any.
        let code = if is_read(self.method) { 500 } else { TIMEOUT };
        let took = self.started.elapsed();
        requests.answered(series, dry_run(self.query), code, took, took);
        requests.terminated(series.labels(), TIMEOUT);
    }
}

impl Filter for Instrumentation {
    async fn handle(&self, mut request: Request, next: &Rest) -> Response {
        let started = Instant::now();
        let info = info_of(&request);
        let query = query_of(&request);
        let method = request.method().clone();
        let line =
            tracing::enabled!(target: HTTP_LOG, tracing::Level::DEBUG).then(|| LogLine::of(&mut request));
        let in_flight = (!info.is_long_running()).then(|| InFlight::new(self.metrics.in_flight(&info)));
        let route = RouteSlot::default();
        request.extensions_mut().insert(route.clone());
        let described = Described { method: &method, info: &info, query: &query, route: &route, started };
        let mut running = Running { instrumentation: self, request: described, has_response: false };
        let response = next.call(request).await;
        running.has_response = true;
        drop((in_flight, running));
        if let Some(line) = line {
            line.log(&method, &info, &response, started.elapsed());
        }
        self.record(response, described)
    }
}

/// The target of the log entries of requests.
const HTTP_LOG: &str = "httplog";

/// The parts of a request's log entry that later filters do not see.
struct LogLine {
    uri: String,
    user_agent: String,
    audit_id: String,
    source: String,
    /// The fields that later filters add.
    fields: LogFields,
}

impl LogLine {
    fn of(request: &mut Request) -> LogLine {
        let fields = LogFields::default();
        request.extensions_mut().insert(fields.clone());
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let (uri, extensions) = (request.uri(), request.extensions());
        LogLine {
            uri: uri.path_and_query().map_or_else(|| uri.path(), |uri| uri.as_str()).to_owned(),
            user_agent: request.headers().get(header::USER_AGENT).map(text).unwrap_or_default(),
            audit_id: extensions.get::<Arrival>().map(|arrival| text(&arrival.audit_id)).unwrap_or_default(),
            source: extensions.get::<RemoteAddress>().map(|remote| remote.0.to_string()).unwrap_or_default(),
            fields,
        }
    }

    /// Logs a request as kube-apiserver does.
    fn log(&self, method: &Method, info: &RequestInfo, response: &Response, took: Duration) {
        let verb = match RequestVerb::of(method, info, false) {
            RequestVerb::Other => method.as_str(),
            verb => verb.as_str(),
        };
        let text = |took: Duration| format_duration(i64::try_from(took.as_nanos()).unwrap_or(i64::MAX));
        let flow = self.fields.flow();
        let flow = flow.as_ref();
        tracing::debug!(
            target: HTTP_LOG,
            verb,
            URI = self.uri,
            latency = text(took),
            userAgent = self.user_agent,
            "audit-ID" = self.audit_id,
            srcIP = self.source,
            apf_pl = flow.map(|flow| flow.priority_level.as_str()),
            apf_fs = flow.map(|flow| flow.flow_schema.as_str()),
            apf_iseats = flow.map(|flow| flow.initial_seats),
            apf_fseats = flow.map(|flow| flow.final_seats),
            apf_additionalLatency = flow.map(|flow| text(flow.additional_latency)),
            apf_execution_time = flow.and_then(|flow| flow.execution_time).map(text),
            resp = response.status().as_u16(),
            "HTTP"
        );
    }
}

impl Instrumentation {
    /// Records a response, now or when it has been sent.
    fn record(&self, mut response: Response, request: Described<'_>) -> Response {
        let Described { method, info, query, route, started } = request;
        let requests = self.metrics.requests();
        let code = response.status().as_u16();
        if let Some(Served { webhook_time }) = response.extensions_mut().remove()
            && let Some(series) = route.series().cloned()
        {
            let waited = response.extensions().get().map_or(Duration::ZERO, |QueueWait(waited)| *waited);
            if let Some(option) = field_validation(query) {
                requests.validated_fields(option, started.elapsed());
            }
            let record = Record {
                metrics: self.metrics.clone(),
                _running: series.long_running().cloned().map(InFlight::new),
                series,
                dry_run: dry_run(query),
                code,
                started,
                excluded: waited + webhook_time,
                sent: 0,
            };
            return record.on(response);
        }
        if let Some(measured) = response.extensions().get::<Measured>() {
            let labels = RequestLabels {
                verb: RequestVerb::of(method, info, false),
                group: "".into(),
                version: "".into(),
                resource: measured.resource.into(),
                subresource: measured.subresource.into(),
                scope: "",
                component: measured.component,
            };
            let size = response.body().size_hint().exact().unwrap_or_default();
            requests.answered_plain(&labels, code, started.elapsed(), size);
        }
        match response.extensions().get::<Terminated>() {
            Some(Terminated::Dropped) => {
                requests.dropped(&RequestLabels::of_refused(method, info), dry_run(query), code);
            }
            Some(Terminated::TimedOut) => request.record_given_up(&self.metrics),
            Some(Terminated::Unavailable) => {
                let labels = RequestLabels::of_refused(method, info);
                requests.terminated(&RequestLabels { component: "aggregator", ..labels }, code);
            }
            None => {}
        }
        response
    }
}

/// The label of the option `dryRun`.
fn dry_run(query: &Query) -> &'static str {
    let mut values = query.pairs().filter(|(name, _)| *name == "dryRun").map(|(_, value)| value).peekable();
    match values.peek().is_some() {
        false => "",
        true if values.all(|value| value == "All") => "All",
        true => "invalid",
    }
}

/// The label of the option `fieldValidation`, if there is one.
fn field_validation(query: &Query) -> Option<&'static str> {
    let value = query.first("fieldValidation")?;
    Some(match FieldValidation::parse(value) {
        _ if value.is_empty() => "",
        Some(option) => option.as_str(),
        None => "invalid",
    })
}

/// Records a request when it is dropped.
struct Record {
    metrics: Arc<Metrics>,
    series: Arc<RouteSeries>,
    dry_run: &'static str,
    code: u16,
    started: Instant,
    /// The part of the duration that is not the server's own.
    excluded: Duration,
    /// The size of the response, in bytes.
    sent: u64,
    /// Counts a long-running request as open.
    _running: Option<InFlight>,
}

impl Drop for Record {
    fn drop(&mut self) {
        let duration = self.started.elapsed();
        let own = duration.saturating_sub(self.excluded);
        self.metrics.requests().answered(&self.series, self.dry_run, self.code, duration, own);
        self.series.sent(self.sent);
    }
}

impl Record {
    /// Records a whole response now, and any other when its body has been sent: an upgraded connection has none until it
    /// ends.
    fn on(mut self, response: Response) -> Response {
        let (parts, body) = response.into_parts();
        let body = match body {
            Body::Full(bytes) if parts.status != StatusCode::SWITCHING_PROTOCOLS => {
                self.sent = bytes.as_ref().map_or(0, Bytes::len) as u64;
                drop(self);
                Body::Full(bytes)
            }
            Body::Stream(frames) if self.series.has_sizes() => {
                Body::Stream(Box::pin(Counted { frames, record: self }))
            }
            body => body.with_guard(self),
        };
        Response::from_parts(parts, body)
    }
}

/// A stream whose bytes are counted.
struct Counted {
    frames: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
    record: Record,
}

impl Stream for Counted {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let frame = self.frames.as_mut().poll_next(context);
        if let Poll::Ready(Some(bytes)) = &frame {
            self.record.sent += bytes.len() as u64;
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_labels() {
        let dry = |query: &str| dry_run(&Query::parse(query));
        assert_eq!([dry(""), dry("dryRun=All&dryRun=All"), dry("dryRun=all")], ["", "All", "invalid"]);
        let validation = |query: &str| field_validation(&Query::parse(query));
        assert_eq!([validation("a=b"), validation("fieldValidation=Warn")], [None, Some("Warn")]);
        assert_eq!(validation("fieldValidation=warn"), Some("invalid"));
    }
}
