//! Formats values for error messages.

use super::Value;
use super::number::shortest;
use pintle_go_forms::format_duration;

impl Value<'_> {
    /// The value in the form of error messages.
    pub(crate) fn display(&self) -> String {
        match self {
            Value::Null => "0".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::Uint(value) => value.to_string(),
            Value::Double(value) => shortest(*value),
            Value::String(text) => text.to_string(),
            Value::Bytes(bytes) => {
                let bytes: Vec<_> = bytes.iter().map(u8::to_string).collect();
                format!("[{}]", bytes.join(" "))
            }
            Value::Timestamp(time) => time.format(),
            Value::Duration(nanos) => format_duration(*nanos),
            Value::List(list) => {
                let items: Vec<_> =
                    list.iter().map(|item| displayed(item.map(|item| item.display()))).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Map(map) => {
                let entries: Vec<_> = map
                    .keys()
                    .iter()
                    .map(|key| {
                        let value = map.find(key).map(|value| value.unwrap_or(Value::Null).display());
                        format!("{}: {}", key.display(), displayed(value))
                    })
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }
            Value::Object(object) => object.display(),
            Value::Optional(None) => "optional.none()".to_owned(),
            Value::Optional(Some(value)) => format!("optional({})", value.display()),
            Value::Type(name) => name.to_string(),
            Value::Opaque(opaque) => opaque.to_string(),
            Value::Unknown(json) => json.to_string(),
        }
    }
}

fn displayed(text: Result<String, crate::EvaluationError>) -> String {
    text.unwrap_or_else(|error| error.to_string())
}
