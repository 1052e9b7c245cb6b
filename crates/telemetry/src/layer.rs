//! Makes spans of those of the `tracing` crate.

use crate::{
    context::{TARGET, TraceContext},
    exporter::{Queue, Receiver},
    messages::{Event, KeyValue, Link, Span, Status, Value},
    sampler::Sampler,
};
use std::{fmt, time::SystemTime};
use tracing::{
    Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer, Registry,
    filter::{FilterFn, filter_fn},
    layer::Context,
    registry::{LookupSpan, SpanRef},
};

/// The most attributes of a span, and the most events: the limits of OpenTelemetry's libraries.
const MAX_ATTRIBUTES: usize = 128;
/// The longest text of an attribute, in bytes.
const MAX_TEXT: usize = 4096;

/// Collects the spans with the target [`TARGET`], and queues those that end.
pub struct SpanLayer {
    sampler: Sampler,
    queue: Queue,
}

/// A sampled span, kept beside that of the `tracing` crate.
struct SpanData {
    context: TraceContext,
    span: Box<Span>,
}

impl SpanLayer {
    /// A layer, and the other end of its queue.
    pub fn new(sampler: Sampler) -> (SpanLayer, Receiver) {
        let (queue, receiver) = Queue::new();
        (SpanLayer { sampler, queue }, receiver)
    }

    /// The filter that the layer needs: it keeps the call sites of all other spans and events switched off.
    pub fn filter() -> FilterFn {
        filter_fn(|metadata| metadata.target() == TARGET)
    }
}

/// The current span, if it is sampled.
pub fn current() -> Option<TraceContext> {
    let span = tracing::Span::current();
    span.with_subscriber(|(id, dispatch)| {
        let span = dispatch.downcast_ref::<Registry>()?.span(id)?;
        context_of(&span)
    })
    .flatten()
}

fn context_of<'a, R: LookupSpan<'a>>(span: &SpanRef<'a, R>) -> Option<TraceContext> {
    span.extensions().get::<SpanData>().map(|data| data.context)
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let (context, parent) = match span.parent() {
            // Below a span that is not sampled, nothing is.
            Some(parent) => {
                let Some(parent) = context_of(&parent) else { return };
                (TraceContext { span: random(), ..parent }, Some(parent))
            }
            None => {
                let trace = fields.parent.map_or_else(random_trace, |parent| parent.trace);
                if !self.sampler.samples(trace, fields.parent) {
                    return;
                }
                (TraceContext { trace, span: random(), is_sampled: true }, fields.parent)
            }
        };
        let mut message = Span {
            trace_id: context.trace.to_be_bytes().to_vec(),
            span_id: context.span.to_be_bytes().to_vec(),
            parent_span_id: parent.map(|parent| parent.span.to_be_bytes().to_vec()).unwrap_or_default(),
            name: attributes.metadata().name().to_owned(),
            kind: 1,
            start_time_unix_nano: now(),
            ..Span::default()
        };
        fields.apply(&mut message);
        span.extensions_mut().insert(SpanData { context, span: Box::new(message) });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        let Some(data) = extensions.get_mut::<SpanData>() else { return };
        let mut fields = Fields::default();
        values.record(&mut fields);
        fields.apply(&mut data.span);
    }

    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let Some(span) = context.event_span(event) else { return };
        let mut extensions = span.extensions_mut();
        let Some(data) = extensions.get_mut::<SpanData>() else { return };
        if data.span.events.len() >= MAX_ATTRIBUTES {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        data.span.events.push(Event {
            time_unix_nano: now(),
            name: fields.message.unwrap_or_default(),
            attributes: fields.attributes,
        });
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        if let Some(SpanData { mut span, .. }) = span.extensions_mut().remove::<SpanData>() {
            span.end_time_unix_nano = now();
            self.queue.add(*span);
        }
    }
}

/// The fields of a span or an event.
#[derive(Default)]
struct Fields {
    attributes: Vec<KeyValue>,
    message: Option<String>,
    name: Option<String>,
    kind: Option<i32>,
    parent: Option<TraceContext>,
    link: Option<TraceContext>,
    error: Option<String>,
    start: Option<u64>,
}

impl Fields {
    fn apply(self, span: &mut Span) {
        let room = MAX_ATTRIBUTES.saturating_sub(span.attributes.len());
        span.attributes.extend(self.attributes.into_iter().take(room));
        span.name = self.name.unwrap_or_else(|| std::mem::take(&mut span.name));
        span.kind = self.kind.unwrap_or(span.kind);
        span.start_time_unix_nano = self.start.unwrap_or(span.start_time_unix_nano);
        span.links.extend(self.link.map(|link| Link {
            trace_id: link.trace.to_be_bytes().to_vec(),
            span_id: link.span.to_be_bytes().to_vec(),
        }));
        if let Some(message) = self.error {
            span.status = Some(Status { message, code: 2 });
        }
    }

    fn add(&mut self, field: &Field, value: Value) {
        if self.attributes.len() < MAX_ATTRIBUTES {
            self.attributes.push(KeyValue::new(field.name(), value));
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        let text = || {
            let end = (0..=MAX_TEXT.min(value.len())).rev().find(|end| value.is_char_boundary(*end));
            value.get(..end.unwrap_or_default()).unwrap_or_default().to_owned()
        };
        match field.name() {
            "otel.name" => self.name = Some(text()),
            "otel.kind" => self.kind = Some(if value == "server" { 2 } else { 3 }),
            "otel.parent" => self.parent = value.parse().ok(),
            "otel.link" => self.link = value.parse().ok(),
            "otel.error" => self.error = Some(text()),
            "message" => self.message = Some(text()),
            _ => self.add(field, Value::Text(text())),
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, Value::Bool(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, Value::Integer(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "otel.start" {
            self.start = Some(value);
            return;
        }
        self.add(field, Value::Integer(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, Value::Float(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

fn random() -> u64 {
    rand::random_range(1..=u64::MAX)
}

fn random_trace() -> u128 {
    rand::random_range(1..=u128::MAX)
}

/// The nanoseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
