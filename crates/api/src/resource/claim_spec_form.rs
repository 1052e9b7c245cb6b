//! The spec of a claim as the messages of the reference show it: the JSON of a struct of its internal version, with the
//! fields' names in Go, in their declared order, and with the fields that have no value.

use pintle_machinery::{Value, ValueExt, text::escape_html};

/// The form of a value.
enum Form {
    /// A text; an absent one is empty.
    Text,
    /// A number; an absent one is zero.
    Number,
    /// A pointer to a plain value, a list of texts, a map, or arbitrary JSON; an absent one is null.
    Plain,
    /// A struct; an absent one has empty fields.
    Struct(&'static [Field]),
    /// A pointer to a struct; an absent one is null.
    Pointer(&'static [Field]),
    /// A list of structs; an absent one is null.
    List(&'static [Field]),
}

/// A field: its name in Go, its name in JSON, and the form of its value.
struct Field(&'static str, &'static str, Form);

const SPEC: &[Field] = &[Field("Devices", "devices", Form::Struct(CLAIM))];
const CLAIM: &[Field] = &[
    Field("Requests", "requests", Form::List(REQUEST)),
    Field("Constraints", "constraints", Form::List(CONSTRAINT)),
    Field("Config", "config", Form::List(CONFIG)),
];
const REQUEST: &[Field] = &[
    Field("Name", "name", Form::Text),
    Field("Exactly", "exactly", Form::Pointer(EXACT_REQUEST)),
    Field("FirstAvailable", "firstAvailable", Form::List(SUB_REQUEST)),
];
const EXACT_REQUEST: &[Field] = &[
    Field("DeviceClassName", "deviceClassName", Form::Text),
    Field("Selectors", "selectors", Form::List(SELECTOR)),
    Field("AllocationMode", "allocationMode", Form::Text),
    Field("Count", "count", Form::Number),
    Field("AdminAccess", "adminAccess", Form::Plain),
    Field("Tolerations", "tolerations", Form::List(TOLERATION)),
    Field("Capacity", "capacity", Form::Pointer(CAPACITY)),
];
const SUB_REQUEST: &[Field] = &[
    Field("Name", "name", Form::Text),
    Field("DeviceClassName", "deviceClassName", Form::Text),
    Field("Selectors", "selectors", Form::List(SELECTOR)),
    Field("AllocationMode", "allocationMode", Form::Text),
    Field("Count", "count", Form::Number),
    Field("Tolerations", "tolerations", Form::List(TOLERATION)),
    Field("Capacity", "capacity", Form::Pointer(CAPACITY)),
];
const SELECTOR: &[Field] = &[Field("CEL", "cel", Form::Pointer(EXPRESSION))];
const EXPRESSION: &[Field] = &[Field("Expression", "expression", Form::Text)];
const TOLERATION: &[Field] = &[
    Field("Key", "key", Form::Text),
    Field("Operator", "operator", Form::Text),
    Field("Value", "value", Form::Text),
    Field("Effect", "effect", Form::Text),
    Field("TolerationSeconds", "tolerationSeconds", Form::Plain),
];
const CAPACITY: &[Field] = &[Field("Requests", "requests", Form::Plain)];
const CONSTRAINT: &[Field] = &[
    Field("Requests", "requests", Form::Plain),
    Field("MatchAttribute", "matchAttribute", Form::Plain),
    Field("DistinctAttribute", "distinctAttribute", Form::Plain),
];
const CONFIG: &[Field] =
    &[Field("Requests", "requests", Form::Plain), Field("Opaque", "opaque", Form::Pointer(OPAQUE))];
const OPAQUE: &[Field] =
    &[Field("Driver", "driver", Form::Text), Field("Parameters", "parameters", Form::Plain)];

/// The spec of a claim.
pub(super) fn of_claim(spec: &Value) -> String {
    let mut out = String::new();
    write(&mut out, Some(spec), &Form::Struct(SPEC));
    out
}

/// The spec of a template of claims: its metadata and the spec of the claims.
pub(super) fn of_template(spec: &Value) -> String {
    let mut out = String::from("{");
    for field in ["labels", "annotations"] {
        let members = spec.at("metadata").map(|metadata| metadata.map_at(field));
        if let Some(members) = members.filter(|members| !members.is_empty()) {
            write_member(&mut out, field, &Value::Object(members.clone()));
        }
    }
    separate(&mut out);
    out.push_str("\"Spec\":");
    write(&mut out, spec.at("spec"), &Form::Struct(SPEC));
    out.push('}');
    out
}

fn write(out: &mut String, value: Option<&Value>, form: &Form) {
    match (form, value.filter(|value| !value.is_null())) {
        (Form::Text, value) => {
            out.push_str(&json(&Value::from(value.and_then(Value::as_str).unwrap_or_default())));
        }
        (Form::Number, None) => out.push('0'),
        (Form::Number | Form::Plain, Some(value)) => out.push_str(&json(value)),
        (Form::Plain | Form::Pointer(_) | Form::List(_), None) => out.push_str("null"),
        (Form::Struct(fields), value) => write_struct(out, value.unwrap_or(&Value::Null), fields),
        (Form::Pointer(fields), Some(value)) => write_struct(out, value, fields),
        (Form::List(fields), Some(list)) => {
            out.push('[');
            for item in list.as_array().into_iter().flatten() {
                separate(out);
                write_struct(out, item, fields);
            }
            out.push(']');
        }
    }
}

fn write_struct(out: &mut String, value: &Value, fields: &[Field]) {
    out.push('{');
    for Field(name, path, form) in fields {
        separate(out);
        out.push_str(&json(&Value::from(*name)));
        out.push(':');
        write(out, value.field(path), form);
    }
    out.push('}');
}

fn write_member(out: &mut String, name: &str, value: &Value) {
    separate(out);
    out.push_str(&json(&Value::from(name)));
    out.push(':');
    out.push_str(&json(value));
}

/// Writes a comma unless the next value is the first one.
fn separate(out: &mut String) {
    if !out.ends_with(['{', '[']) {
        out.push(',');
    }
}

/// The JSON of a plain value, with the escapes of Go.
fn json(value: &Value) -> String {
    escape_html(&value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn fields_have_their_go_names_and_absent_ones_are_shown() {
        let spec = json!({"devices": {"requests": [
            {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}},
            {"name": "s", "firstAvailable": [{"name": "t", "selectors": [{"cel": {"expression": "a < b"}}]}]},
        ]}});
        let exactly = r#"{"DeviceClassName":"gpu","Selectors":null,"AllocationMode":"ExactCount","Count":1,"AdminAccess":null,"Tolerations":null,"Capacity":null}"#;
        let sub = r#"{"Name":"t","DeviceClassName":"","Selectors":[{"CEL":{"Expression":"a \u003c b"}}],"AllocationMode":"","Count":0,"Tolerations":null,"Capacity":null}"#;
        let expected = format!(
            r#"{{"Devices":{{"Requests":[{{"Name":"r","Exactly":{exactly},"FirstAvailable":null}},{{"Name":"s","Exactly":null,"FirstAvailable":[{sub}]}}],"Constraints":null,"Config":null}}}}"#
        );
        assert_eq!(of_claim(&spec), expected);
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": spec});
        assert_eq!(of_template(&template), format!(r#"{{"labels":{{"a":"b"}},"Spec":{expected}}}"#));
    }
}
