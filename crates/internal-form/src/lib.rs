//! The form in which messages show values of internal versions.
//!
//! kube-apiserver validates objects in their internal version, whose types have no JSON names. So a message that shows a
//! struct has the names of its fields in Go, in declared order, and every field, also those without a value. Parts
//! of `meta/v1` have their JSON form.
//!
//! `types.txt` lists the types that messages show. An unindented line names a type, and an indented one is a field: its
//! name in Go, its name in the versioned JSON, and the form of its value:
//!
//! | form | value | when absent |
//! |---|---|---|
//! | `s` | text | `""` |
//! | `n` | number | `0` |
//! | `b` | boolean | `false` |
//! | `q` | quantity | `"0"` |
//! | `i` | integer or text | `0` |
//! | `?` | any JSON without structs | `null` |
//! | `T` | struct of the type `T` | all its fields |
//! | `*T`, `[]T` | pointer to such a struct, list of them | `null` |
//! | `@T` | the JSON form of the type `T` of `meta/v1` | its empty form |
//!
//! `+` before a form makes a line an embedded struct, whose fields are among those of its parent. A JSON name with `^` is a
//! member of the struct around the type.

mod line_diff;

use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Map, Value, ValueExt,
    codec::json::{encode, indented},
    text::escape_html,
    validation::validate_immutable_field,
};
use pintle_schema::Schema;
use std::{collections::HashMap, sync::LazyLock};

/// The fields of each type.
static TYPES: LazyLock<HashMap<&str, Vec<Field>>> = LazyLock::new(|| {
    let mut types: HashMap<&str, Vec<Field>> = HashMap::new();
    let mut current = "";
    for line in include_str!("types.txt").lines() {
        match line.strip_prefix("  ") {
            None => current = line,
            Some(field) => types.entry(current).or_default().extend(Field::parse(field)),
        }
    }
    types
});

/// The length of a shown value, in bytes, at which it is cut: a volume of a few bytes has thirty fields, so that a small
/// body could ask for a message of fifty times its size.
const MAX_SHOWN: usize = 256 << 10;

const META_TYPES: &str = "k8s.io/apimachinery/pkg/apis/meta/v1.";

struct Field {
    /// The name in Go; empty for an embedded struct.
    name: &'static str,
    /// The name in JSON.
    json: &'static str,
    /// Whether the member belongs to the struct around the type.
    is_outer: bool,
    form: Form,
}

impl Field {
    fn parse(text: &'static str) -> Option<Field> {
        if let Some(form) = text.strip_prefix('+') {
            return Some(Field { name: "", json: "", is_outer: false, form: Form::parse(form) });
        }
        let (name, rest) = text.split_once(' ')?;
        let (json, form) = rest.split_once(' ')?;
        let is_outer = json.starts_with('^');
        Some(Field { name, json: json.trim_start_matches('^'), is_outer, form: Form::parse(form) })
    }
}

enum Form {
    /// A plain value, with the JSON of an absent one.
    Plain(&'static str),
    Struct(&'static str),
    Pointer(Box<Form>),
    List(Box<Form>),
    /// The JSON form of a type of `meta/v1`.
    Meta(&'static str),
}

impl Form {
    fn parse(text: &'static str) -> Form {
        match text {
            "s" => Form::Plain("\"\""),
            "n" | "i" => Form::Plain("0"),
            "b" => Form::Plain("false"),
            "q" => Form::Plain("\"0\""),
            "?" => Form::Plain("null"),
            _ => {
                if let Some(form) = text.strip_prefix('*') {
                    Form::Pointer(Box::new(Form::parse(form)))
                } else if let Some(form) = text.strip_prefix("[]") {
                    Form::List(Box::new(Form::parse(form)))
                } else if let Some(name) = text.strip_prefix('@') {
                    Form::Meta(name)
                } else {
                    Form::Struct(text)
                }
            }
        }
    }
}

/// Shows the value of an error as `form`, in the notation of the table.
pub fn show(error: FieldError, form: &'static str) -> FieldError {
    match (&error.bad_value, Form::parse(form)) {
        (None, _) | (_, Form::Plain(_)) => error,
        (Some(value), _) => {
            let text = shown(value, form);
            error.shown_as(text)
        }
    }
}

/// Requires that a field is unchanged; see [`show`]. An empty struct is equal to none, but not behind a pointer.
pub fn validate_immutable(new: &Value, old: &Value, path: &FieldPath, form: &'static str) -> ErrorList {
    let empty = Value::Object(Map::new());
    let is_struct = matches!(Form::parse(form), Form::Struct(_));
    let whole = |value| if is_struct && Value::is_null(value) { &empty } else { value };
    let errors = validate_immutable_field(whole(new), whole(old), path);
    errors.into_iter().map(|error| show(error, form)).collect()
}

/// The JSON of a value as `form`, cut at [`MAX_SHOWN`].
pub fn shown(value: &Value, form: &'static str) -> String {
    let mut out = String::new();
    write(&mut out, Some(value), &Form::parse(form), &Value::Null);
    if out.len() > MAX_SHOWN {
        let is_boundary = |end: &usize| out.is_char_boundary(*end);
        out.truncate((0..=MAX_SHOWN).rev().find(is_boundary).unwrap_or_default());
    }
    out
}

/// The lines of the indented JSON that differ between two values, as a unified diff.
pub fn difference(old: &Value, new: &Value, form: &'static str) -> String {
    let text = |value| indented(escape_html(&shown(value, form)).as_bytes(), 1);
    let (old, new) = (text(old), text(new));
    line_diff::unified(&String::from_utf8_lossy(&old), &String::from_utf8_lossy(&new))
}

/// Writes a value; `outer` is the struct that has it as a member.
fn write(out: &mut String, value: Option<&Value>, form: &Form, outer: &Value) {
    let value = value.filter(|value| !value.is_null());
    match (form, value) {
        (Form::Plain(absent), None) => out.push_str(absent),
        (Form::Plain(_), Some(value)) => out.push_str(&value.to_string()),
        (Form::Pointer(_) | Form::List(_), None) => out.push_str("null"),
        (Form::Pointer(form), value) => write(out, value, form, outer),
        (Form::List(form), Some(list)) => {
            out.push('[');
            for (index, item) in list.as_array().into_iter().flatten().enumerate() {
                if out.len() > MAX_SHOWN {
                    break;
                }
                if index > 0 {
                    out.push(',');
                }
                write(out, Some(item), form, outer);
            }
            out.push(']');
        }
        (Form::Meta(name), value) => out.push_str(&meta_form(value, name)),
        (Form::Struct(name), value) => {
            out.push('{');
            write_fields(out, value.unwrap_or(&Value::Null), name, outer);
            out.push('}');
        }
    }
}

fn write_fields(out: &mut String, value: &Value, type_name: &str, outer: &Value) {
    for Field { name, json, is_outer, form } in TYPES.get(type_name).into_iter().flatten() {
        if out.len() > MAX_SHOWN {
            break;
        }
        match form {
            Form::Meta(meta) if name.is_empty() => {
                let text = meta_form(value.at("metadata"), meta);
                let members = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(&text);
                if !members.is_empty() {
                    separate(out);
                    out.push_str(members);
                }
            }
            Form::Struct(embedded) if name.is_empty() => write_fields(out, value, embedded, outer),
            form => {
                separate(out);
                out.push_str(&Value::from(*name).to_string());
                out.push(':');
                let holder = if *is_outer { outer } else { value };
                write(out, holder.field(json), form, value);
            }
        }
    }
}

/// The JSON form of a type of `meta/v1`; that of an absent value is empty.
fn meta_form(value: Option<&Value>, name: &str) -> String {
    let empty = Value::Object(Map::new());
    json_form(value.unwrap_or(&empty), &format!("{META_TYPES}{name}"))
}

/// The JSON of a value in the order of its type's fields.
pub fn json_form(value: &Value, type_name: &str) -> String {
    match Schema::builtin().by_type_name(type_name) {
        Some(schema) => String::from_utf8_lossy(&encode(value, schema)).into_owned(),
        None => value.to_string(),
    }
}

fn separate(out: &mut String) {
    if !out.ends_with('{') {
        out.push(',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn every_type_that_is_named_is_listed() {
        fn check(form: &Form) {
            match form {
                Form::Plain(_) => {}
                Form::Struct(name) => assert!(TYPES.contains_key(name), "{name}"),
                Form::Pointer(form) | Form::List(form) => check(form),
                Form::Meta(name) => {
                    assert_eq!(meta_form(None, name).chars().next(), Some('{'), "{name}")
                }
            }
        }
        assert!(TYPES.len() > 100);
        TYPES.values().flatten().for_each(|field| check(&field.form));
    }

    #[test]
    fn a_pointer_to_nothing_is_not_none() {
        let path = FieldPath::new("related");
        let check = |new: &Value, old: &Value, form, want: &[&str]| {
            let errors = validate_immutable(new, old, &path, form);
            let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts, want, "{form}");
        };
        let (none, empty) = (Value::Null, json!({}));
        check(&none, &empty, "*core.ObjectReference", &["related: Invalid value: null: field is immutable"]);
        check(&empty, &empty, "*core.ObjectReference", &[]);
        check(&none, &none, "*core.ObjectReference", &[]);
        check(&empty, &none, "core.ObjectReference", &[]);
        let shown = validate_immutable(&empty, &none, &path, "*core.ObjectReference");
        assert!(shown.iter().all(|error| error.to_string().contains(r#"{"Kind":"","Namespace":"""#)));
        assert_eq!(shown.len(), 1);
    }

    #[test]
    fn every_field_is_shown_and_embedded_ones_are_among_them() {
        assert_eq!(
            shown(
                &json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "1%"}}),
                "apps.DeploymentStrategy"
            ),
            r#"{"Type":"RollingUpdate","RollingUpdate":{"MaxUnavailable":0,"MaxSurge":"1%"}}"#
        );
        assert_eq!(
            shown(
                &json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}),
                "*core.NodeSelector"
            ),
            r#"{"NodeSelectorTerms":[{"MatchExpressions":[{"Key":"a","Operator":"Exists","Values":null}],"MatchFields":null}]}"#
        );
        assert_eq!(shown(&Value::Null, "*core.NodeSelector"), "null");
        assert!(shown(&json!({}), "core.PodTemplateSpec").starts_with(r#"{"Spec":{"Volumes":null"#));
        assert_eq!(
            shown(&json!([{"key": "a"}]), "[]core.Taint"),
            r#"[{"Key":"a","Value":"","Effect":"","TimeAdded":null}]"#
        );
        let template = shown(
            &json!({"metadata": {"labels": {"a": "}"}}, "spec": {"hostNetwork": true, "securityContext": {}, "volumes": [{"name": "v", "emptyDir": {}}]}}),
            "core.PodTemplateSpec",
        );
        assert!(template.starts_with(r#"{"labels":{"a":"}"},"Spec":{"Volumes":[{"Name":"v","HostPath":null,"EmptyDir":{"Medium":"","SizeLimit":null},"#), "{template}");
        assert!(template.contains(r#""SecurityContext":{"HostNetwork":true,"HostPID":false,"#), "{template}");
    }

    #[test]
    fn values_are_shown_up_to_a_length() {
        let volumes: Vec<Value> = (0..40_000).map(|at| json!({"name": at.to_string()})).collect();
        let spec = json!({"volumes": volumes});
        assert_eq!(shown(&spec, "core.PodSpec").len(), MAX_SHOWN);
        let plain = json!({"nodeSelector": {"a": "ä".repeat(MAX_SHOWN)}});
        assert!((MAX_SHOWN - 1..=MAX_SHOWN).contains(&shown(&plain, "core.PodSpec").len()));
        let difference = difference(&json!({}), &spec, "core.PodSpec");
        assert!(difference.len() < 2 * MAX_SHOWN, "{}", difference.len());
    }

    #[test]
    fn differences_are_those_of_indented_lines() {
        let taint = |value: &str| json!({"key": "a", "value": value, "effect": "NoSchedule"});
        assert_eq!(
            difference(&taint("<x>"), &taint("y"), "core.Taint"),
            "@@ -1,6 +1,6 @@\n {\n  \"Key\": \"a\",\n- \"Value\": \"\\u003cx\\u003e\",\n+ \"Value\": \"y\",\n  \"Effect\": \"NoSchedule\",\n  \"TimeAdded\": null\n }\n"
        );
    }
}
