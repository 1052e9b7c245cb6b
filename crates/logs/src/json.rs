//! The JSON format of Kubernetes' components: an object a line.

use crate::entry::{Entry, FieldValue, Severity};
use jiff::Timestamp;
use serde_json::{Number, Value};

/// The line of an entry, with its newline.
pub(crate) fn line(entry: &Entry<'_>, now: Timestamp) -> String {
    let mut members = Members::default();
    members.put("ts", Value::from(now.as_nanosecond() as f64 / 1e6));
    members.put("caller", Value::from(caller(entry)));
    members.put("msg", Value::from(entry.message.as_str()));
    // Errors have no verbosity.
    if entry.severity != Severity::Error {
        members.put("v", Value::from(entry.verbosity.0));
    }
    for (name, value) in &entry.fields {
        let value = match value {
            FieldValue::Text(text) => Value::from(text.as_str()),
            FieldValue::Signed(number) => {
                Number::from_i128(*number).map_or_else(|| Value::from(number.to_string()), Value::Number)
            }
            FieldValue::Unsigned(number) => {
                Number::from_u128(*number).map_or_else(|| Value::from(number.to_string()), Value::Number)
            }
            FieldValue::Float(number) => Value::from(*number),
            FieldValue::Bool(flag) => Value::from(*flag),
        };
        members.put(name, value);
    }
    members.finish()
}

/// The last folder, the name, and the line of the source file.
fn caller(entry: &Entry<'_>) -> String {
    let mut parts = entry.file.rsplit('/').filter(|part| *part != "src");
    let (name, folder) = (parts.next().unwrap_or_default(), parts.next());
    match folder {
        Some(folder) => format!("{folder}/{name}:{}", entry.line),
        None => format!("{name}:{}", entry.line),
    }
}

/// The members of an object, in their order.
#[derive(Default)]
struct Members(String);

impl Members {
    fn put(&mut self, name: &str, value: Value) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&Value::from(name).to_string());
        self.0.push(':');
        self.0.push_str(&value.to_string());
    }

    fn finish(mut self) -> String {
        self.0.push_str("}\n");
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verbosity;

    #[test]
    fn lines_are_objects() {
        let now = Timestamp::from_nanosecond(1_795_444_894_729_385_700).unwrap();
        let mut entry = Entry {
            severity: Severity::Info,
            verbosity: Verbosity(3),
            file: "crates/apiserver/src/filters/instrumentation.rs",
            line: 7,
            message: "HTTP".to_owned(),
            fields: vec![
                ("verb", FieldValue::Text("GET\n".to_owned())),
                ("resp", FieldValue::Unsigned(200)),
                ("large", FieldValue::Signed(-1)),
            ],
        };
        assert_eq!(
            line(&entry, now),
            "{\"ts\":1795444894729.3857,\"caller\":\"filters/instrumentation.rs:7\",\"msg\":\"HTTP\",\"v\":3,\
             \"verb\":\"GET\\n\",\"resp\":200,\"large\":-1}\n"
        );
        entry.severity = Severity::Error;
        entry.fields.clear();
        entry.file = "crates/pintle/src/main.rs";
        assert_eq!(
            line(&entry, now),
            "{\"ts\":1795444894729.3857,\"caller\":\"pintle/main.rs:7\",\"msg\":\"HTTP\"}\n"
        );
    }
}
