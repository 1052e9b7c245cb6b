//! The subscriber of the program's events and spans.

use pintle_logs::{Levels, LogLayer};
use pintle_telemetry::SpanLayer;
use tracing::Dispatch;
use tracing_subscriber::{Layer, layer::SubscriberExt, registry};

/// Logs the events that `levels` select, and collects spans if there is a layer for them.
///
/// Without one, the call sites of spans are disabled. An absent layer in the subscriber would enable them, because an
/// `Option<Layer>` that is `None` takes no part in the filters of the layers beside it: each request would create its spans
/// for nobody.
pub(crate) fn subscriber(spans: Option<SpanLayer>, log: LogLayer, levels: Levels) -> Dispatch {
    match spans {
        Some(spans) => {
            let spans = spans.with_filter(SpanLayer::filter());
            registry().with(spans).with(log.with_filter(levels)).into()
        }
        None => registry().with(log.with_filter(levels)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_logs::{LogFormat, LogWriter, Streams};
    use pintle_telemetry::{Sampler, TARGET};
    use tracing::dispatcher::with_default;

    #[test]
    fn spans_are_created_only_if_they_are_collected() {
        for is_traced in [false, true] {
            let (errors, _flush) = LogWriter::start(std::io::sink(), None).unwrap();
            let log = LogLayer::new(LogFormat::Text, Streams { errors, others: None });
            let spans = is_traced.then(|| SpanLayer::new(Sampler::per_million(1_000_000)).0);
            with_default(&subscriber(spans, log, Levels::default()), || {
                let span = tracing::info_span!(target: TARGET, "span");
                assert_eq!(span.is_disabled(), !is_traced);
                assert!(tracing::enabled!(tracing::Level::ERROR), "the log");
            });
        }
    }
}
