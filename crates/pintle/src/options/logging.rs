//! The flags of the log
//! (<https://kubernetes.io/docs/concepts/cluster-administration/system-logs/>).

use super::arguments::{Refused, duration, flag, set, switch};
use clap::{Arg, ArgMatches};
use pintle_go_forms::{format_duration, quote};
use pintle_logs::{Buffer, Flush, Levels, LogFormat, LogLayer, LogWriter, Streams, Verbosity, Vmodule};
use pintle_machinery::Quantity;
use std::{io, time::Duration};

/// The options of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggingOptions {
    /// `text` or `json`.
    pub format: String,
    /// Which informational entries are logged.
    pub verbosity: Verbosity,
    /// Verbosities of single source files.
    pub vmodule: Vmodule,
    /// How often buffered entries are written.
    pub flush_frequency: Duration,
    /// The options of the text format.
    pub text: StreamOptions,
    /// The options of the JSON format.
    pub json: StreamOptions,
}

/// The options of one format.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamOptions {
    /// Whether errors go to standard error, and all other entries to standard output.
    pub split_stream: bool,
    /// The size of the buffer of informational entries in split streams, in bytes; 0 or less for no buffer.
    pub info_buffer_size: i64,
}

/// The feature gates of logging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoggingFeatures {
    /// Whether `LoggingAlphaOptions` is open: split streams and their buffers.
    pub(crate) alpha_options: bool,
    /// Whether `LoggingBetaOptions` is open: JSON.
    pub(crate) beta_options: bool,
}

impl Default for LoggingOptions {
    fn default() -> LoggingOptions {
        LoggingOptions {
            format: "text".to_owned(),
            verbosity: Verbosity(0),
            vmodule: Vmodule::default(),
            flush_frequency: Duration::from_secs(5),
            text: StreamOptions::default(),
            json: StreamOptions::default(),
        }
    }
}

impl LoggingOptions {
    /// The flags.
    pub fn args() -> Vec<Arg> {
        vec![
            flag("v", "N", "Log verbosity").short('v').value_parser(str::parse::<Verbosity>),
            flag("vmodule", "PATTERN=N,…", "Log verbosity of source files, in the text format")
                .value_parser(str::parse::<Vmodule>),
            flag("logging-format", "NAME", "Log format: text or json"),
            flag("log-flush-frequency", "DURATION", "Interval at which buffered log entries are written")
                .value_parser(duration),
            flag(
                "log-text-info-buffer-size",
                "SIZE",
                "Size of the buffer of info entries in split streams; 0 for none",
            )
            .value_parser(size),
            switch(
                "log-text-split-stream",
                "Writes errors to standard error and info entries to standard output",
            ),
            flag(
                "log-json-info-buffer-size",
                "SIZE",
                "Size of the buffer of info entries in split streams; 0 for none",
            )
            .value_parser(size),
            switch(
                "log-json-split-stream",
                "Writes errors to standard error and info entries to standard output",
            ),
        ]
    }

    /// Reads the flags.
    pub fn read(matches: &ArgMatches) -> LoggingOptions {
        let mut options = LoggingOptions::default();
        set(matches, "v", &mut options.verbosity);
        set(matches, "vmodule", &mut options.vmodule);
        set(matches, "logging-format", &mut options.format);
        set(matches, "log-flush-frequency", &mut options.flush_frequency);
        set(matches, "log-text-info-buffer-size", &mut options.text.info_buffer_size);
        set(matches, "log-text-split-stream", &mut options.text.split_stream);
        set(matches, "log-json-info-buffer-size", &mut options.json.info_buffer_size);
        set(matches, "log-json-split-stream", &mut options.json.split_stream);
        options
    }

    /// The errors of the options.
    pub(crate) fn errors(&self, features: LoggingFeatures, refused: &mut Refused) -> Vec<String> {
        let mut errors = Vec::new();
        if !["text", "json"].contains(&self.format.as_str()) {
            errors.push(format!("format: Invalid value: {}: Unsupported log format", quote(&self.format)));
        } else if self.format == "json" && !features.beta_options {
            let why = "Log format json is disabled, see LoggingBetaOptions feature";
            errors.push(format!("format: Forbidden: {why}"));
        }
        errors.extend(refused.take(&["log-flush-frequency"]));
        if self.flush_frequency.is_zero() {
            let zero = quote(&format_duration(0));
            errors.push(format!("flushFrequency: Invalid value: {zero}: Must be greater than zero"));
        }
        if self.format != "text" && !self.vmodule.is_empty() {
            errors.push("vmodule: Forbidden: Only supported for text log format".to_owned());
        }
        for (name, options) in [("text", &self.text), ("json", &self.json)] {
            let forbidden = |option: &str| {
                format!("options.{name}.{option}: Forbidden: Feature LoggingAlphaOptions is disabled")
            };
            if options.split_stream && !features.alpha_options {
                errors.push(forbidden("splitStream"));
            }
            if options.info_buffer_size != 0 && !features.alpha_options {
                errors.push(forbidden("infoBufferSize"));
            }
        }
        errors
    }

    /// The layer that writes the log, and the guards that write the rest of it at the end.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn layer(&self, levels: &Levels) -> io::Result<(LogLayer, Vec<Flush>)> {
        levels.set(self.verbosity, self.vmodule.clone());
        let (format, options) = match self.format.as_str() {
            "json" => (LogFormat::Json, &self.json),
            _ => (LogFormat::Text, &self.text),
        };
        let (errors, flush) = LogWriter::start(io::stderr(), None)?;
        let mut flushes = vec![flush];
        let mut others = None;
        if options.split_stream {
            let size = usize::try_from(options.info_buffer_size).ok().filter(|size| *size > 0);
            let buffer = size.map(|size| Buffer { size, flush_frequency: self.flush_frequency });
            let (writer, flush) = LogWriter::start(io::stdout(), buffer)?;
            others = Some(writer);
            flushes.push(flush);
        }
        Ok((LogLayer::new(format, Streams { errors, others }), flushes))
    }
}

/// The limit of a buffer, in bytes.
const MAX_BUFFER: i64 = 64 << 20;

/// Parses a size, which is a quantity of at most 64 MiB.
fn size(text: &str) -> Result<i64, String> {
    let quantity = Quantity::parse(text).map_err(|error| error.to_string())?;
    Ok(quantity.value().min(MAX_BUFFER))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: LoggingFeatures = LoggingFeatures { alpha_options: false, beta_options: true };

    fn errors(options: &LoggingOptions, features: LoggingFeatures) -> Vec<String> {
        options.errors(features, &mut Refused::default())
    }

    #[test]
    fn mistakes_are_told_in_the_reference_s_words() {
        let check = |options: LoggingOptions, expected: &str| {
            assert_eq!(errors(&options, DEFAULT).join(", "), expected);
        };
        let default = LoggingOptions::default;
        assert!(errors(&default(), DEFAULT).is_empty());
        let json = LoggingOptions { format: "json".to_owned(), ..default() };
        assert!(errors(&json, DEFAULT).is_empty());
        assert_eq!(
            errors(&json, LoggingFeatures { beta_options: false, ..DEFAULT }),
            ["format: Forbidden: Log format json is disabled, see LoggingBetaOptions feature"]
        );
        check(
            LoggingOptions { format: "xml".to_owned(), ..default() },
            "format: Invalid value: \"xml\": Unsupported log format",
        );
        check(
            LoggingOptions { flush_frequency: Duration::ZERO, ..default() },
            "flushFrequency: Invalid value: \"0s\": Must be greater than zero",
        );
        let vmodule = "a=1".parse().unwrap();
        check(
            LoggingOptions { format: "json".to_owned(), vmodule, ..default() },
            "vmodule: Forbidden: Only supported for text log format",
        );
        let split = StreamOptions { split_stream: true, info_buffer_size: 1000 };
        let split = LoggingOptions { json: split, ..default() };
        assert!(errors(&split, LoggingFeatures { alpha_options: true, ..DEFAULT }).is_empty());
        check(
            split,
            "options.json.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled, \
             options.json.infoBufferSize: Forbidden: Feature LoggingAlphaOptions is disabled",
        );
    }

    #[test]
    fn sizes_are_quantities() {
        assert_eq!(size("64Ki"), Ok(65536));
        assert_eq!(size("1E"), Ok(64 << 20));
        assert_eq!(size("-1"), Ok(-1));
        assert!(size("x").is_err());
    }
}
