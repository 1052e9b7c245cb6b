//! Reads values inside untyped objects, with the behaviour and the error messages of Go's `unstructured` helpers.

use crate::{
    Value,
    text::{go_format, go_type},
};

/// The whole number at a path such as `spec.replicas`; `None` when the path is absent.
///
/// # Errors
/// When a value on the path is not an object, or the value at the path is of another type.
pub fn nested_int64(object: &Value, path: &str) -> Result<Option<i64>, String> {
    let Some(value) = nested(object, path)? else { return Ok(None) };
    value.as_i64().map(Some).ok_or_else(|| accessor_error(path, value, "int64"))
}

/// The text at a path; `None` when the path is absent.
///
/// # Errors
/// When a value on the path is not an object, or the value at the path is of another type.
pub fn nested_string<'a>(object: &'a Value, path: &str) -> Result<Option<&'a str>, String> {
    let Some(value) = nested(object, path)? else { return Ok(None) };
    value.as_str().map(Some).ok_or_else(|| accessor_error(path, value, "string"))
}

fn nested<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let names: Vec<&str> = path.split('.').collect();
    let mut value = object;
    for (depth, name) in names.iter().enumerate() {
        let members = match value {
            Value::Object(members) => members,
            Value::Null => return Ok(None),
            other => {
                let way = names.get(..=depth).unwrap_or_default().join(".");
                return Err(accessor_error(&way, other, "map[string]interface{}"));
            }
        };
        match members.get(name) {
            None => return Ok(None),
            Some(member) => value = member,
        }
    }
    Ok(Some(value))
}

fn accessor_error(path: &str, value: &Value, expected: &str) -> String {
    let (shown, own) = (go_format(value), go_type(value));
    format!(".{path} accessor error: {shown} is of the type {own}, expected {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_tree::json;

    #[test]
    fn what_is_in_the_way_is_told_as_go_does() {
        let object = json!({"spec": {"n": 3, "text": "x", "none": null, "part": 1.5}, "list": [1]});
        let rows = [
            ("spec.n", Ok(Some(3))),
            ("spec.absent", Ok(None)),
            ("status.n", Ok(None)),
            ("spec.none.n", Ok(None)),
            ("spec.text", Err(".spec.text accessor error: x is of the type string, expected int64")),
            ("spec.part", Err(".spec.part accessor error: 1.5 is of the type float64, expected int64")),
            ("spec.none", Err(".spec.none accessor error: <nil> is of the type <nil>, expected int64")),
            (
                "spec.n.deep",
                Err(".spec.n.deep accessor error: 3 is of the type int64, expected map[string]interface{}"),
            ),
            (
                "list.n",
                Err(
                    ".list.n accessor error: [1] is of the type []interface {}, expected map[string]interface{}",
                ),
            ),
        ];
        for (path, expected) in rows {
            assert_eq!(nested_int64(&object, path), expected.map_err(str::to_owned), "{path}");
        }
        assert_eq!(nested_string(&object, "spec.text"), Ok(Some("x")));
    }
}
