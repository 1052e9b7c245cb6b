//! Writes events as log lines.

use crate::{
    LogWriter,
    entry::{Entry, Severity},
    json, text,
};
use jiff::{Timestamp, Zoned};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// The format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Klog's text format.
    #[default]
    Text,
    /// An object a line.
    Json,
}

/// The streams that lines are written to.
pub struct Streams {
    /// Errors.
    pub errors: LogWriter,
    /// All others; `None` if they go to the same stream.
    pub others: Option<LogWriter>,
}

/// Writes events as log lines. [`crate::Levels`] is its filter.
pub struct LogLayer {
    format: LogFormat,
    streams: Streams,
    process: u32,
}

impl LogLayer {
    /// A layer that writes to these streams.
    pub fn new(format: LogFormat, streams: Streams) -> LogLayer {
        LogLayer { format, streams, process: std::process::id() }
    }
}

impl<S: Subscriber> Layer<S> for LogLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let entry = Entry::of(event);
        let line = match self.format {
            LogFormat::Text => text::line(&entry, &Zoned::now(), self.process),
            LogFormat::Json => json::line(&entry, Timestamp::now()),
        };
        let stream = match (&self.streams.others, entry.severity) {
            (Some(others), Severity::Info | Severity::Warning) => others,
            _ => &self.streams.errors,
        };
        stream.write_line(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HTTP, Levels, Verbosity};
    use std::io::{self, Read};
    use tracing_subscriber::layer::SubscriberExt;

    /// The log of a function, in the two streams.
    fn logged(levels: &Levels, log: impl FnOnce()) -> [String; 2] {
        let [(mut errors, error_pipe), (mut others, other_pipe)] = [io::pipe().unwrap(), io::pipe().unwrap()];
        let (error_writer, error_flush) = LogWriter::start(error_pipe, None).unwrap();
        let (other_writer, other_flush) = LogWriter::start(other_pipe, None).unwrap();
        let streams = Streams { errors: error_writer, others: Some(other_writer) };
        let layer = LogLayer::new(LogFormat::Json, streams).with_filter(levels.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        drop((error_flush, other_flush));
        let mut texts = [String::new(), String::new()];
        errors.read_to_string(&mut texts[0]).unwrap();
        others.read_to_string(&mut texts[1]).unwrap();
        texts
    }

    #[test]
    fn entries_are_selected_by_verbosity_and_split_by_severity() {
        let log = || {
            tracing::error!(error = "it broke", "e");
            tracing::warn!("w");
            tracing::info!(count = 3, "i");
            tracing::debug!(target: HTTP, "h");
            tracing::debug!("d");
            tracing::trace!("t");
            tracing::debug!(target: "h2::server", "l");
            tracing::warn!(target: "h2::proto::ping_pong", "p");
        };
        let levels = Levels::default();
        let messages = |text: &str| -> String {
            let entry = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
            text.lines().map(|line| entry(line)["msg"].as_str().unwrap().to_owned()).collect()
        };
        for (verbosity, expected) in [(0, "wi"), (3, "wih"), (4, "wihd"), (6, "wihdt"), (8, "wihdtlp")] {
            levels.set_verbosity(Verbosity(verbosity));
            let [errors, others] = logged(&levels, log);
            assert_eq!(messages(&errors), "e", "{errors}");
            assert!(errors.contains("\"err\":\"it broke\""), "{errors}");
            assert_eq!(messages(&others), expected, "{verbosity}");
        }
        levels.set(Verbosity(0), "layer=4".parse().unwrap());
        assert_eq!(messages(&logged(&levels, log)[1]), "wihd");
        levels.set(Verbosity(0), "others=4".parse().unwrap());
        assert_eq!(messages(&logged(&levels, log)[1]), "wi");
    }
}
