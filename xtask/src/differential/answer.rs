//! An answer, without what differs between any two servers: versions, times, and what is chosen at random.

use pintle_harness::Response;
use serde_json::Value;

use super::case::Case;

/// The members whose values differ between servers.
const RANDOM: [&str; 13] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "time",
    "lastTransitionTime",
    "lastHeartbeatTime",
    "clusterIP",
    "clusterIPs",
    "nodePort",
    "healthCheckNodePort",
    "token",
    "age",
];

/// The headers that are compared.
const HEADERS: [&str; 5] = ["content-type", "warning", "cache-control", "vary", "retry-after"];

/// The longest text of a value in a report.
const SHOWN: usize = 160;

#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    body: Body,
}

#[derive(Clone, Debug, PartialEq)]
enum Body {
    /// The value, and the text without its values.
    Json(Value, String),
    /// Lines that are compared.
    Text(Vec<String>),
    /// A body that is not compared, except by whether it is empty.
    Bytes(bool),
}

impl Answer {
    pub(super) fn of(response: &Response, case: &Case) -> Answer {
        let generated = case.generated.as_deref();
        let mut headers: Vec<(String, String)> = response
            .headers
            .iter()
            .filter(|(name, _)| HEADERS.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), masked(value, generated)))
            .collect();
        headers.sort();
        let is_protobuf = response.header("content-type").is_some_and(|name| name.contains("protobuf"));
        let text = std::str::from_utf8(&response.body);
        let body = match (text, serde_json::from_slice(&response.body)) {
            _ if is_protobuf => Body::Bytes(response.body.is_empty()),
            (Ok(text), Ok(value)) => Body::Json(compared(value, generated), skeleton(text)),
            (Ok(text), Err(_)) => {
                let is_random = |line: &str| {
                    let name = line.trim_start_matches(['-', ' ']).split(':').next().unwrap_or_default();
                    RANDOM.contains(&name) || line.trim_start().starts_with("- 10.0.0.")
                };
                let lines = text.lines().filter(|line| !is_random(line));
                Body::Text(lines.map(|line| masked(line, generated)).collect())
            }
            (Err(_), _) => Body::Bytes(response.body.is_empty()),
        };
        Answer { status: response.status, headers, body }
    }

    /// The connection that ends in place of an answer; its status is 0.
    pub(super) fn none() -> Answer {
        Answer { status: 0, headers: Vec::new(), body: Body::Bytes(true) }
    }

    /// The differences of another answer to the same request.
    pub(super) fn differences(&self, found: &Answer) -> Vec<String> {
        let mut differences = Vec::new();
        if self.status != found.status {
            differences.push(format!("status: want {} got {}", self.status, found.status));
        }
        match (&self.body, &found.body) {
            (Body::Json(want, want_form), Body::Json(got, got_form)) => {
                compare(want, got, "", &mut differences);
                if differences.is_empty() && want_form != got_form {
                    differences.push(format!("form: want {} got {}", shown(want_form), shown(got_form)));
                }
            }
            (Body::Text(want), Body::Text(got)) => {
                let differs = want.iter().zip(got).find(|(want, got)| want != got);
                match differs {
                    Some((want, got)) => differences.push(format!("line: want {want} got {got}")),
                    None if want.len() != got.len() => {
                        differences.push(format!("lines: want {} got {}", want.len(), got.len()));
                    }
                    None => {}
                }
            }
            (want, got) if want != got => differences.push("body: of another form".to_owned()),
            _ => {}
        }
        if self.headers != found.headers {
            let texts = |headers: &[(String, String)]| {
                headers.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("; ")
            };
            differences.push(format!(
                "headers: want {} got {}",
                shown(&texts(&self.headers)),
                shown(&texts(&found.headers))
            ));
        }
        differences
    }
}

fn compare(want: &Value, got: &Value, path: &str, differences: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(want), Value::Object(got)) => {
            for (name, want) in want {
                let path = format!("{path}.{name}");
                match got.get(name) {
                    Some(got) => compare(want, got, &path, differences),
                    None => differences.push(format!("{path}: missing, want {}", shown(&want.to_string()))),
                }
            }
            let unexpected = got.iter().filter(|(name, _)| !want.contains_key(*name));
            differences.extend(
                unexpected
                    .map(|(name, got)| format!("{path}.{name}: unexpected {}", shown(&got.to_string()))),
            );
        }
        (Value::Array(want), Value::Array(got)) if want.len() == got.len() => {
            for (index, (want, got)) in want.iter().zip(got).enumerate() {
                compare(want, got, &format!("{path}[{index}]"), differences);
            }
        }
        (want, got) if want != got => differences.push(format!(
            "{path}: want {} got {}",
            shown(&want.to_string()),
            shown(&got.to_string())
        )),
        _ => {}
    }
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The value without what is random. The entries of managed fields have no order within a second.
fn compared(value: Value, generated: Option<&str>) -> Value {
    match value {
        Value::Object(members) => {
            let compared_member = |(name, value): (String, Value)| {
                let value = match (name.as_str(), compared(value, generated)) {
                    (name, Value::String(_) | Value::Number(_) | Value::Array(_))
                        if RANDOM.contains(&name) =>
                    {
                        Value::from("<random>")
                    }
                    // The descriptions of columns are prose of each server's own.
                    ("columnDefinitions", Value::Array(mut columns)) => {
                        for column in &mut columns {
                            column.as_object_mut().map(|column| column.remove("description"));
                        }
                        Value::Array(columns)
                    }
                    ("managedFields", Value::Array(mut entries)) => {
                        entries.sort_by_key(Value::to_string);
                        Value::Array(entries)
                    }
                    (_, value) => value,
                };
                (name, value)
            };
            Value::Object(members.into_iter().map(compared_member).collect())
        }
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| compared(item, generated)).collect())
        }
        Value::String(text) => Value::from(masked(&text, generated)),
        value => value,
    }
}

/// The text without UUIDs, times, ages, addresses of services, and the suffixes of generated names.
fn masked(text: &str, generated: Option<&str>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let found = [(36, is_uuid as fn(&[u8]) -> bool, "<uid>"), (20, is_time, "<time>")]
            .into_iter()
            .find(|(length, is_one, _)| rest.as_bytes().get(..*length).is_some_and(is_one));
        let suffix = generated.filter(|prefix| !prefix.is_empty()).and_then(|prefix| {
            let suffix = rest.strip_prefix(prefix)?.as_bytes().get(..5)?;
            suffix.iter().all(|byte| b"bcdfghjklmnpqrstvwxz2456789".contains(byte)).then_some(prefix)
        });
        let (length, replacement) = match (found, suffix) {
            (Some((length, _, replacement)), _) => (length, replacement.to_owned()),
            (None, Some(prefix)) => (prefix.len() + 5, format!("{prefix}<suffix>")),
            (None, None) => (first.len_utf8(), first.to_string()),
        };
        out.push_str(&replacement);
        rest = rest.get(length..).unwrap_or_default();
    }
    let is_age = |unit: &str| {
        out.strip_suffix(unit)
            .is_some_and(|age| !age.is_empty() && age.bytes().all(|byte| byte.is_ascii_digit()))
    };
    match ["ms", "s", "m"].into_iter().any(is_age) {
        true => "<age>".to_owned(),
        false if out.starts_with("10.0.0.") => "<address>".to_owned(),
        false => out,
    }
}

fn is_uuid(bytes: &[u8]) -> bool {
    bytes.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

fn is_time(bytes: &[u8]) -> bool {
    bytes.iter().zip(b"dddd-dd-ddTdd:dd:ddZ").all(|(byte, form)| match form {
        b'd' => byte.is_ascii_digit(),
        form => byte == form,
    })
}

/// A JSON text without its values: the names of members in their order, and the white space.
fn skeleton(text: &str) -> String {
    let mut out = String::with_capacity(text.len() / 2);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first != '"' {
            if !(first.is_ascii_digit() || "+-.eE".contains(first)) {
                out.push(first);
            }
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            continue;
        }
        let mut is_escaped = false;
        let end = rest.char_indices().skip(1).find_map(|(at, letter)| {
            let is_end = letter == '"' && !is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
            is_end.then_some(at + 1)
        });
        let (string, after) = rest.split_at_checked(end.unwrap_or(rest.len())).unwrap_or((rest, ""));
        if after.trim_start().starts_with(':') {
            out.push_str(string);
        }
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(status: u16, body: &str) -> Answer {
        let headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("date".to_owned(), body.to_owned()),
        ];
        let response = Response { status, headers, body: body.as_bytes().to_vec() };
        Answer::of(&response, &Case::new("POST", "/", "").json(&json!({"metadata": {"generateName": "a-"}})))
    }

    #[test]
    fn what_is_random_does_not_differ() {
        let one = r#"{"metadata":{"name":"a-bcdfg","uid":"x","creationTimestamp":"2026-01-01T00:00:00Z"},"message":"a-bcdfg of 8bfbe1f0-6a5b-4a3c-9df3-1f6a7d6a7f11 at 2026-01-01T00:00:00Z","cells":["3s","10.0.0.7"]}"#;
        let other = r#"{"metadata":{"name":"a-24567","uid":"y","creationTimestamp":"2027-01-01T00:00:00Z"},"message":"a-24567 of 0bfbe1f0-6a5b-4a3c-9df3-1f6a7d6a7f11 at 2027-01-01T00:00:00Z","cells":["12ms","10.0.0.9"]}"#;
        assert_eq!(answer(200, one).differences(&answer(200, other)), Vec::<String>::new());
        let sorted = r#"{"managedFields":[{"manager":"a"},{"manager":"b"}]}"#;
        let unsorted = r#"{"managedFields":[{"manager":"b"},{"manager":"a"}]}"#;
        assert_eq!(answer(200, sorted).differences(&answer(200, unsorted)), Vec::<String>::new());
    }

    #[test]
    fn what_differs_is_told_by_its_path() {
        let differences = |one: &str, other: &str| answer(200, one).differences(&answer(200, other));
        assert_eq!(
            differences(r#"{"a":[{"b":1,"c":2}]}"#, r#"{"a":[{"b":2,"d":3}]}"#),
            [".a[0].b: want 1 got 2", ".a[0].c: missing, want 2", ".a[0].d: unexpected 3"]
        );
        assert_eq!(
            differences(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#),
            [r#"form: want {"a":,"b":} got {"b":,"a":}"#]
        );
        assert_eq!(differences(r#"{"a":1}"#, "{\"a\":1}\n"), ["form: want {\"a\":} got {\"a\":}\n"]);
        assert_eq!(differences("a: 1\n", "a: 2\n"), ["line: want a: 1 got a: 2"]);
        assert_eq!(answer(200, "{}").differences(&answer(404, "{}")), ["status: want 200 got 404"]);
    }
}
