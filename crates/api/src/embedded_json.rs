//! Decodes JSON texts inside objects, such as in annotations, with the messages of Go's `encoding/json`. Their trees are
//! bounded like those of bodies.

use pintle_machinery::{
    Map, Value,
    codec::{json, parse_time},
    text::go_json_type,
};

/// A Go struct without JSON names: its fields match their own names in any case.
pub(crate) struct GoStruct {
    /// The name of the type, in package `core`.
    pub(crate) name: &'static str,
    /// The fields, and their types.
    pub(crate) fields: &'static [(&'static str, GoType)],
}

/// The type of a field of a [`GoStruct`].
#[derive(Clone, Copy)]
pub(crate) enum GoType {
    /// A string, or a type with this name made of it.
    String(&'static str),
    /// An integer of 64 bits.
    Int64,
    /// A `metav1.Time`.
    Time,
}

/// Checks that a text is a JSON object, or `null`.
///
/// # Errors
/// The message of Go's decoder.
pub(crate) fn check_object(text: &[u8]) -> Result<(), String> {
    match json::decode_any_body(text).map_err(|error| error.to_string())? {
        Value::Object(_) | Value::Null => Ok(()),
        other => Err(mismatch(go_json_type(&other), "value", "map[string]interface {}")),
    }
}

/// Decodes a list of structs. Members of the items have the JSON names of the API's types.
///
/// # Errors
/// The message of Go's decoder.
pub(crate) fn decode_list(text: &str, item: &GoStruct) -> Result<Vec<Value>, String> {
    let items = match json::decode_any_body(text.as_bytes()).map_err(|error| error.to_string())? {
        Value::Array(items) => items,
        Value::Null => return Ok(Vec::new()),
        other => {
            let list = format!("[]core.{}", item.name);
            return Err(mismatch(go_json_type(&other), "value", &list));
        }
    };
    let mut failure = None;
    let decoded = items.into_iter().map(|value| item.decode(value, &mut failure));
    let decoded = decoded.collect::<Result<Vec<Value>, String>>()?;
    failure.map_or(Ok(decoded), Err)
}

impl GoStruct {
    /// Decodes one struct. Stores the first value of a wrong type in `failure`; decoding continues after it.
    fn decode(&self, value: Value, failure: &mut Option<String>) -> Result<Value, String> {
        let members = match value {
            Value::Object(members) => members,
            Value::Null => Map::new(),
            other => {
                let name = format!("core.{}", self.name);
                failure.get_or_insert_with(|| mismatch(go_json_type(&other), "value", &name));
                Map::new()
            }
        };
        let mut decoded = Map::new();
        for (key, value) in members {
            let Some((name, ty)) = self.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(&key))
            else {
                continue;
            };
            let wrong =
                |found: &str, ty: &str| mismatch(found, &format!("struct field {}.{name}", self.name), ty);
            let found = go_json_type(&value);
            match (ty, &value) {
                (_, Value::Null) => continue,
                (GoType::String(_), Value::String(_)) => {}
                (GoType::String(ty), _) => {
                    failure.get_or_insert_with(|| wrong(found, ty));
                }
                (GoType::Int64, Value::Number(number)) if number.as_i64().is_some() && !number.is_f64() => {}
                (GoType::Int64, Value::Number(number)) => {
                    failure.get_or_insert_with(|| wrong(&format!("number {number}"), "int64"));
                }
                (GoType::Int64, _) => {
                    failure.get_or_insert_with(|| wrong(found, "int64"));
                }
                // The type has a decoder of its own, whose error ends the decoding.
                (GoType::Time, Value::String(text)) => {
                    parse_time(text)?;
                }
                (GoType::Time, _) => return Err(wrong(found, "string")),
            }
            let (first, rest) = name.split_at(1);
            decoded.insert(format!("{}{rest}", first.to_ascii_lowercase()), value);
        }
        Ok(Value::Object(decoded))
    }
}

fn mismatch(found: &str, place: &str, ty: &str) -> String {
    format!("json: cannot unmarshal {found} into Go {place} of type {ty}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    const TAINT: GoStruct = GoStruct {
        name: "Taint",
        fields: &[
            ("Key", GoType::String("string")),
            ("Effect", GoType::String("core.TaintEffect")),
            ("Seconds", GoType::Int64),
            ("TimeAdded", GoType::Time),
        ],
    };

    #[test]
    fn syntax_errors_are_those_of_go() {
        let error = |text: &str| check_object(text.as_bytes()).unwrap_err();
        assert_eq!(error("Bad_Value!"), "invalid character 'B' looking for beginning of value");
        assert_eq!(error("10%"), "invalid character '%' after top-level value");
        assert_eq!(error(r#"{"auths":{}"#), "unexpected end of JSON input");
        assert_eq!(error("1"), "json: cannot unmarshal number into Go value of type map[string]interface {}");
        assert_eq!((check_object(b"{}"), check_object(b"null")), (Ok(()), Ok(())));
    }

    #[test]
    fn trees_are_bounded_like_those_of_bodies() {
        let many = format!("[{}null]", r#"{"":1},"#.repeat(400_000));
        assert!(check_object(many.as_bytes()).is_err_and(|why| !why.contains("cannot unmarshal")));
        assert!(decode_list(&many, &TAINT).is_err());
    }

    #[test]
    fn items_have_the_fields_of_their_struct() {
        let items = decode_list(
            r#"[{"KEY":"a","effect":null,"timeAdded":"2030-01-01T00:00:00Z","x":1},null]"#,
            &TAINT,
        );
        assert_eq!(items, Ok(vec![json!({"key": "a", "timeAdded": "2030-01-01T00:00:00Z"}), json!({})]));
        let error = |text: &str| decode_list(text, &TAINT).unwrap_err();
        assert_eq!(error("{}"), "json: cannot unmarshal object into Go value of type []core.Taint");
        assert_eq!(error("[1]"), "json: cannot unmarshal number into Go value of type core.Taint");
        assert_eq!(
            error(r#"[{"effect":1}]"#),
            "json: cannot unmarshal number into Go struct field Taint.Effect of type core.TaintEffect"
        );
        assert_eq!(
            error(r#"[{"seconds":1.5},{"key":[]}]"#),
            "json: cannot unmarshal number 1.5 into Go struct field Taint.Seconds of type int64"
        );
        assert_eq!(
            error(r#"[{"key":[]},{"timeAdded":{}}]"#),
            "json: cannot unmarshal object into Go struct field Taint.TimeAdded of type string"
        );
    }
}
