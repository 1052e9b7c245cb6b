//! Checks that kinds declare on their fields (`+k8s:` markers of the API types), with the messages of those markers
//! (<https://kubernetes.io/docs/reference/using-api/declarative-validation/>).
//!
//! An update does not check a field again that it leaves unchanged.

use crate::{field_checks::invalid_each, rules};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    validation::{
        DNS1123_LABEL_MAX_LENGTH, DNS1123_SUBDOMAIN_MAX_LENGTH, FIELD_IMMUTABLE_ERROR, is_dns1123_label,
        is_dns1123_subdomain, is_qualified_name, validate_path_segment_name,
    },
};

/// The format of a name: the messages for a text that does not have it.
pub(crate) type Format = fn(&str) -> Vec<String>;

/// A DNS label.
pub(crate) const SHORT_NAME: Format =
    |name| rules::in_bytes(is_dns1123_label(name), DNS1123_LABEL_MAX_LENGTH);
/// A DNS subdomain.
pub(crate) const LONG_NAME: Format =
    |name| rules::in_bytes(is_dns1123_subdomain(name), DNS1123_SUBDOMAIN_MAX_LENGTH);
/// The key of a label.
pub(crate) const LABEL_KEY: Format = is_qualified_name;
/// A name that is a segment of a path.
pub(crate) const PATH_SEGMENT: Format = |name| validate_path_segment_name(name, false);

/// An immutable field that has changed. The message does not show the value, nor an empty list that the body has there.
pub(crate) fn changed(path: &FieldPath) -> FieldError {
    FieldError::invalid(path, "", FIELD_IMMUTABLE_ERROR).shown_as("null")
}

/// A field that is behind a closed feature gate.
pub(crate) fn closed(path: &FieldPath) -> FieldError {
    FieldError::forbidden(path, "")
}

/// Requires a text in a format.
pub(crate) fn required_text(object: &Value, member: &str, path: &FieldPath, format: Format) -> ErrorList {
    let (text, path) = (object.str_at(member), path.child(member));
    match text.is_empty() {
        true => vec![FieldError::required(&path, "")],
        false => invalid_each(&path, text, format(text)),
    }
}

/// Checks the format of a text, if there is one. An empty text is none.
pub(crate) fn optional_text(object: &Value, member: &str, path: &FieldPath, format: Format) -> ErrorList {
    match object.str_at(member) {
        "" => ErrorList::new(),
        text => invalid_each(&path.child(member), text, format(text)),
    }
}

/// Checks the format of a text that is a pointer: an empty text is checked, too.
pub(crate) fn pointed_text(object: &Value, member: &str, path: &FieldPath, format: Format) -> ErrorList {
    match object.at(member).and_then(Value::as_str) {
        Some(text) => invalid_each(&path.child(member), text, format(text)),
        None => ErrorList::new(),
    }
}

/// Requires a number, if there is one, to be at most `max` and at least `min`.
pub(crate) fn bounded(number: Option<i64>, path: &FieldPath, min: i64, max: i64) -> ErrorList {
    let Some(number) = number else { return ErrorList::new() };
    let detail = match number {
        number if number > max => format!("must be less than or equal to {max}"),
        number if number < min => format!("must be greater than or equal to {min}"),
        _ => return ErrorList::new(),
    };
    vec![FieldError::invalid(path, number, detail)]
}

/// Requires exactly one member of a union. An update that keeps the same members is valid.
pub(crate) fn union(object: &Value, old: Option<&Value>, members: &[&str], path: &FieldPath) -> ErrorList {
    let set =
        |object: &Value| -> Vec<bool> { members.iter().map(|member| object.at(member).is_some()).collect() };
    let is_set = set(object);
    if old.is_some_and(|old| set(old) == is_set) {
        return ErrorList::new();
    }
    let all: Vec<String> = members.iter().map(|member| format!("`{member}`")).collect();
    let all = all.join(", ");
    let chosen: Vec<&str> =
        members.iter().zip(is_set).filter(|(_, is_set)| *is_set).map(|(member, _)| *member).collect();
    match chosen.as_slice() {
        [] => vec![FieldError::invalid(path, "", format!("must specify one of: {all}"))],
        [_] => ErrorList::new(),
        chosen => {
            let shown = format!("{{{}}}", chosen.join(", "));
            vec![FieldError::invalid(path, shown, format!("must specify exactly one of: {all}"))]
        }
    }
}

/// Checks a list with a key: its length, the uniqueness of the keys, and each item. `type_name` is the type of the items
/// in the schema. An item of the old list with the same key is passed to the check of the item; an item that equals it
/// is not checked.
pub(crate) fn keyed_list(
    list: &KeyedList<'_>,
    path: &FieldPath,
    item: impl Fn(&Value, Option<&Value>, &FieldPath) -> ErrorList,
) -> ErrorList {
    let KeyedList { items, old, max, key, type_name } = *list;
    if items.len() > max {
        return vec![FieldError::too_many(path, items.len(), max)];
    }
    let is_repeated = |index: usize, value: &Value| {
        items.iter().take(index).any(|earlier| earlier.str_at(key) == value.str_at(key))
    };
    let mut errors = ErrorList::new();
    for (index, value) in items.iter().enumerate().filter(|(index, value)| is_repeated(*index, value)) {
        errors.push(
            FieldError::duplicate(&path.index(index), value.clone())
                .shown_as(pintle_internal_form::json_form(value, type_name)),
        );
    }
    for (index, value) in items.iter().enumerate() {
        let old = old.iter().find(|old| old.str_at(key) == value.str_at(key));
        if old != Some(value) {
            errors.extend(item(value, old, &path.index(index)));
        }
    }
    errors
}

/// A list whose items have a key.
#[derive(Clone, Copy)]
pub(crate) struct KeyedList<'a> {
    pub(crate) items: &'a [Value],
    pub(crate) old: &'a [Value],
    pub(crate) max: usize,
    pub(crate) key: &'a str,
    pub(crate) type_name: &'a str,
}

/// Whether an update leaves the value at a path unchanged.
pub(crate) fn is_unchanged(object: &Value, old: Option<&Value>, path: &str) -> bool {
    old.is_some_and(|old| !rules::differs(object, old, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn messages(errors: &ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn one_member_of_a_union_is_set() {
        let check = |object: Value, old: Option<Value>, expected: &[&str]| {
            let errors = union(&object, old.as_ref(), &["a", "b"], &FieldPath::new("f"));
            assert_eq!(messages(&errors), expected);
        };
        check(json!({"a": {}}), None, &[]);
        check(json!({}), None, &["f: Invalid value: \"\": must specify one of: `a`, `b`"]);
        check(json!({}), Some(json!({})), &[]);
        check(
            json!({"a": 1, "b": 1}),
            Some(json!({"a": 1})),
            &["f: Invalid value: \"{a, b}\": must specify exactly one of: `a`, `b`"],
        );
    }

    #[test]
    fn numbers_are_bounded() {
        let check = |number: Option<i64>, expected: &[&str]| {
            assert_eq!(messages(&bounded(number, &FieldPath::new("f"), 1, 5)), expected);
        };
        check(None, &[]);
        check(Some(5), &[]);
        check(Some(6), &["f: Invalid value: 6: must be less than or equal to 5"]);
        check(Some(0), &["f: Invalid value: 0: must be greater than or equal to 1"]);
    }

    #[test]
    fn lengths_of_names_are_in_bytes() {
        let check = |format: Format, length: usize, expected: &[&str]| {
            assert_eq!(format(&"a".repeat(length)), expected);
        };
        check(SHORT_NAME, 63, &[]);
        check(SHORT_NAME, 64, &["must be no more than 63 bytes"]);
        check(LONG_NAME, 254, &["must be no more than 253 bytes"]);
    }

    #[test]
    fn items_have_keys_of_their_own() {
        let type_name = "k8s.io/api/scheduling/v1alpha2.PodGroupTemplate";
        let item = |name: &str| json!({"name": name, "schedulingPolicy": {"gang": {"minCount": 2}}});
        let check = |items: &[Value], old: &[Value], expected: &[&str]| {
            let list = KeyedList { items, old, max: 2, key: "name", type_name };
            let errors = keyed_list(&list, &FieldPath::new("f"), |item, _, path| {
                required_text(item, "name", path, SHORT_NAME)
            });
            assert_eq!(messages(&errors), expected);
        };
        check(&[item("a"), item("b")], &[], &[]);
        check(&[item("")], &[], &["f[0].name: Required value"]);
        check(&[item("")], &[item("")], &[]);
        check(
            &[item("a"), item("a")],
            &[],
            &[
                r#"f[1]: Duplicate value: {"name":"a","schedulingPolicy":{"gang":{"minCount":2}},"schedulingConstraints":null}"#,
            ],
        );
        check(&[item("a"), item("b"), item("c")], &[], &["f: Too many: 3: must have at most 2 items"]);
    }
}
