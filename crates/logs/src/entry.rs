//! One log entry: what its formats write.

use crate::Verbosity;
use std::fmt;
use tracing::{
    Event, Level,
    field::{Field, Visit},
};

/// The severity of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    Info,
    Warning,
    Error,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FieldValue {
    Text(String),
    Signed(i128),
    Unsigned(u128),
    Float(f64),
    Bool(bool),
}

/// A log entry.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) severity: Severity,
    pub(crate) verbosity: Verbosity,
    /// The path of the source file.
    pub(crate) file: &'a str,
    pub(crate) line: u32,
    pub(crate) message: String,
    /// Names and values, in the order of the source.
    pub(crate) fields: Vec<(&'static str, FieldValue)>,
}

/// The length limit of a message or a value, in bytes.
const MAX_TEXT: usize = 4 << 10;

impl<'a> Entry<'a> {
    /// The entry of an event.
    pub(crate) fn of(event: &'a Event<'_>) -> Entry<'a> {
        let metadata = event.metadata();
        let mut entry = Entry {
            severity: match *metadata.level() {
                Level::ERROR => Severity::Error,
                Level::WARN => Severity::Warning,
                Level::INFO | Level::DEBUG | Level::TRACE => Severity::Info,
            },
            verbosity: Verbosity::of(metadata),
            file: metadata.file().unwrap_or("???"),
            line: metadata.line().unwrap_or_default(),
            message: String::new(),
            fields: Vec::new(),
        };
        event.record(&mut entry);
        entry
    }

    /// The name of the source file, without its folder.
    pub(crate) fn file_name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(self.file)
    }

    fn add(&mut self, field: &Field, value: FieldValue) {
        match (field.name(), value) {
            ("message", FieldValue::Text(message)) => self.message = message,
            // Klog's name.
            ("error", value) => self.fields.push(("err", value)),
            (name, value) => self.fields.push((name, value)),
        }
    }

    fn add_text(&mut self, field: &Field, mut text: String) {
        if text.len() > MAX_TEXT {
            let end = (0..=MAX_TEXT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
            text.truncate(end);
            text.push_str(" [...]");
        }
        self.add(field, FieldValue::Text(text));
    }
}

impl Visit for Entry<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add_text(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add_text(field, value.to_owned());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, FieldValue::Signed(value.into()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, FieldValue::Unsigned(value.into()));
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.add(field, FieldValue::Signed(value));
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.add(field, FieldValue::Unsigned(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, FieldValue::Float(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, FieldValue::Bool(value));
    }
}
