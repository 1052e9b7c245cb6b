//! Decodes the options of streams and proxied requests.

use super::query::{QueryValues, parse_unsigned};
use crate::{Map, Status, Value, codec::parse_time};
use pintle_schema::{FieldRef, SchemaRef, Type};

/// Decodes options of the kind of `schema`, such as `PodExecOptions`, from a query string.
///
/// # Errors
/// 400 when a value is not of its field's type.
pub fn connect_options<'a>(
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    schema: SchemaRef<'_>,
) -> Result<Value, Status> {
    let query = QueryValues::new(pairs);
    let mut options = Map::new();
    // A query string does not set kind and apiVersion.
    for field in schema.fields().filter(|field| !matches!(field.name(), "kind" | "apiVersion")) {
        if let Some(value) = value_of(&query, field)? {
            options.insert(field.name(), value);
        }
    }
    Ok(Value::Object(options))
}

fn value_of(query: &QueryValues<'_>, field: FieldRef<'_>) -> Result<Option<Value>, Status> {
    let name = field.name();
    Ok(match field.ty().ty() {
        Type::Bool => query.boolean(name).map(Value::from),
        Type::Int32 | Type::Int64 => query.integer(name)?.map(Value::from),
        Type::Time => query.first(name).map(time).transpose()?,
        Type::List if query.first(name).is_none() => None,
        Type::List if field.ty().item().ty() == Type::Int32 => Some(ports(&query.all(name))?),
        Type::List => Some(query.all(name).into()),
        _ => query.first(name).map(Value::from),
    })
}

/// An absent time and the year 1 differ in a log's options: the latter is a given time.
fn time(text: &str) -> Result<Value, Status> {
    match text {
        "" | "null" => Ok(Value::from("0001-01-01T00:00:00Z")),
        text => parse_time(text).map(|time| Value::from(time.to_seconds())).map_err(Status::bad_request),
    }
}

/// Parses 16-bit numbers, separated by commas or each in a parameter of its own.
fn ports(texts: &[String]) -> Result<Value, Status> {
    let ports = texts.iter().flat_map(|text| text.split(',')).map(|text| {
        parse_unsigned::<u16>(text)
            .map_err(|error| Status::bad_request(format!("cannot convert to []int32: {error}")))
    });
    ports.map(|port| port.map(Value::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_schema::Schema;
    use pintle_tree::json;

    fn read(kind: &str, pairs: &[(&str, &str)]) -> Result<Value, String> {
        let schema = Schema::builtin().by_kind("", "v1", kind).unwrap();
        connect_options(pairs.iter().copied(), schema)
            .map_err(|status| format!("{} {}", status.code, status.message))
    }

    #[test]
    fn parameters_become_fields_of_their_types() {
        let check = |kind: &str, pairs: &[(&str, &str)], expected: Value| {
            assert_eq!(read(kind, pairs), Ok(expected), "{pairs:?}");
        };
        check("PodLogOptions", &[("kind", "x"), ("unknown", "1")], json!({}));
        check(
            "PodLogOptions",
            &[
                ("tailLines", "5"),
                ("tailLines", "x"),
                ("follow", "False"),
                ("previous", ""),
                ("container", ""),
            ],
            json!({"tailLines": 5, "follow": false, "previous": true, "container": ""}),
        );
        check("PodLogOptions", &[("sinceTime", "")], json!({"sinceTime": "0001-01-01T00:00:00Z"}));
        check(
            "PodLogOptions",
            &[("sinceTime", "2026-01-02T03:04:05.5+01:00")],
            json!({"sinceTime": "2026-01-02T02:04:05Z"}),
        );
        check(
            "PodExecOptions",
            &[("command", "sh"), ("command", "-c"), ("stdin", "1")],
            json!({"command": ["sh", "-c"], "stdin": true}),
        );
        check(
            "PodPortForwardOptions",
            &[("ports", "80,81"), ("ports", "82")],
            json!({"ports": [80, 81, 82]}),
        );
    }

    #[test]
    fn values_of_other_types_are_refused() {
        let check = |kind: &str, name: &str, value: &str, message: &str| {
            assert_eq!(read(kind, &[(name, value)]), Err(format!("400 {message}")));
        };
        check("PodLogOptions", "tailLines", "x", "strconv.ParseInt: parsing \"x\": invalid syntax");
        check(
            "PodLogOptions",
            "sinceTime",
            "x",
            "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"",
        );
        let ports = "cannot convert to []int32: strconv.ParseUint: parsing";
        check("PodPortForwardOptions", "ports", "80,", &format!("{ports} \"\": invalid syntax"));
        check("PodPortForwardOptions", "ports", "65536", &format!("{ports} \"65536\": value out of range"));
        check("PodPortForwardOptions", "ports", "-1", &format!("{ports} \"-1\": invalid syntax"));
    }
}
