//! Exports spans to an OpenTelemetry collector: OTLP over gRPC (<https://opentelemetry.io/docs/specs/otlp/>).
//!
//! A span is a span of the `tracing` crate with the target [`TARGET`]. Without a [`SpanLayer`] no such span exists: its call
//! site is switched off, which costs one load. With one, the root span of a request decides whether the request is sampled,
//! and the spans below it follow. Ended spans go to a bounded queue, whose other end is the [`Exporter`]; what does not fit
//! is dropped and counted.
//!
//! Some fields of a span are about the span itself:
//! - `otel.name` is its name, if that is not known to the compiler;
//! - `otel.kind` is `server` or `client`; other spans are internal;
//! - `otel.parent` is a `traceparent` of another process, whose span is the parent;
//! - `otel.link` is a `traceparent` that the span refers to, without being below it;
//! - `otel.start` is the time of its begin in nanoseconds since 1970, if that was earlier;
//! - `otel.error` is the reason of a failure.
//!
//! The macro [`event!`] adds an event to the current span.

mod context;
mod exporter;
mod layer;
mod messages;
mod propagation;
mod sampler;

pub use context::{TARGET, TRACEPARENT, TraceContext};
pub use exporter::{Exporter, Receiver};
pub use layer::{SpanLayer, current};
pub use propagation::{ended, inject};
pub use sampler::Sampler;

/// Adds an event with a name, and attributes after it, to the current span: `event!("read", "len" = 5)`.
#[macro_export]
macro_rules! event {
    ($name:literal $(, $key:literal = $value:expr)* $(,)?) => {
        tracing::info!(target: $crate::TARGET, { $($key = $value),* }, $name)
    };
}
