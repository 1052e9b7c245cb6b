//! Klog's text format: `I1123 14:04:05.123456    4242 file.rs:65] "message" key="value"`.

use crate::entry::{Entry, FieldValue, Severity};
use jiff::Zoned;
use pintle_go_forms::quote;
use std::fmt::Write;

/// The line of an entry, with its newline.
pub(crate) fn line(entry: &Entry<'_>, now: &Zoned, process: u32) -> String {
    let severity = match entry.severity {
        Severity::Info => 'I',
        Severity::Warning => 'W',
        Severity::Error => 'E',
    };
    let mut line = String::with_capacity(128);
    let microseconds = now.subsec_nanosecond() / 1000;
    // Writing to a string cannot fail.
    let _ = write!(
        line,
        "{severity}{:02}{:02} {:02}:{:02}:{:02}.{microseconds:06} {process:7} {}:{}] {}",
        now.month(),
        now.day(),
        now.hour(),
        now.minute(),
        now.second(),
        entry.file_name(),
        entry.line,
        quote(&entry.message),
    );
    for (name, value) in &entry.fields {
        let _ = write!(line, " {name}=");
        match value {
            // Texts of several lines stay readable, and cannot begin a line of their own.
            FieldValue::Text(text) if text.contains('\n') => {
                line.push_str("<\n");
                for part in text.strip_suffix('\n').unwrap_or(text).split('\n') {
                    line.push('\t');
                    line.push_str(part);
                    line.push('\n');
                }
                line.push_str(" >");
            }
            FieldValue::Text(text) => line.push_str(&quote(text)),
            FieldValue::Signed(number) => drop(write!(line, "{number}")),
            FieldValue::Unsigned(number) => drop(write!(line, "{number}")),
            FieldValue::Float(number) => drop(write!(line, "{number}")),
            FieldValue::Bool(flag) => drop(write!(line, "{flag}")),
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verbosity;
    use jiff::{Timestamp, tz::TimeZone};

    #[test]
    fn lines_are_klog_s() {
        let now = Timestamp::from_microsecond(1_795_444_896_123_456).unwrap().to_zoned(TimeZone::UTC);
        let entry = Entry {
            severity: Severity::Warning,
            verbosity: Verbosity(0),
            file: "crates/a/src/reflector.rs",
            line: 12,
            message: "it \"ended\"\nat once".to_owned(),
            fields: vec![
                ("resource", FieldValue::Text("pods".to_owned())),
                ("count", FieldValue::Unsigned(3)),
                ("change", FieldValue::Signed(-3)),
                ("part", FieldValue::Float(0.5)),
                ("done", FieldValue::Bool(true)),
                ("err", FieldValue::Text("first\nI1123 second\n".to_owned())),
            ],
        };
        assert_eq!(
            line(&entry, &now, 4242),
            "W1123 14:41:36.123456    4242 reflector.rs:12] \"it \\\"ended\\\"\\nat once\" resource=\"pods\" \
             count=3 change=-3 part=0.5 done=true err=<\n\tfirst\n\tI1123 second\n >\n"
        );
    }
}
