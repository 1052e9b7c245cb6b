//! Spans that have ended already, and the current one for other processes.

use crate::{
    context::{TARGET, TRACEPARENT},
    layer::current,
};
use std::time::{Duration, SystemTime};

/// Exports a span that has just ended.
pub fn ended(name: &str, duration: Duration) {
    if tracing::enabled!(target: TARGET, tracing::Level::INFO) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let start = u64::try_from(now.saturating_sub(duration).as_nanos()).unwrap_or(u64::MAX);
        drop(tracing::info_span!(target: TARGET, "ended", otel.name = name, otel.start = start));
    }
}

/// Puts the current span into the headers of a request to another server, if it is sampled.
pub fn inject(headers: &mut http::HeaderMap) {
    if let Some(value) = current().and_then(|context| http::HeaderValue::from_str(&context.to_string()).ok())
    {
        headers.insert(TRACEPARENT, value);
    }
}
