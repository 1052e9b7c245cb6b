//! The types of the fields of reviews, which an answer must have.

use pintle_go_forms::base64;
use pintle_machinery::{Value, text::go_json_type};

/// The type of a field. `null` is of every type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// A boolean.
    Bool,
    /// A string.
    Text,
    /// Bytes, as a string in base64.
    Bytes,
    /// A list of strings.
    Texts,
    /// A list of objects; the name of Go's type of each, and its fields.
    Objects(&'static str, &'static [(&'static str, FieldType)]),
    /// A map of strings.
    TextMap,
    /// A map of lists of strings; the name of Go's type of the lists, empty for one without a name.
    TextsMap(&'static str),
    /// An object; the name of Go's type, and the fields.
    Object(&'static str, &'static [(&'static str, FieldType)]),
}

/// The place of a value in a review.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// The name of Go's type that has the field.
    owner: &'a str,
    /// The path of the field from the review.
    path: &'a str,
    /// The version of the types of the review.
    version: &'a str,
}

impl FieldType {
    /// Checks the field `name` of a review, whose Go type is `owner` in the package `version`.
    ///
    /// # Errors
    /// The message of Go's decoder, when a value has another type.
    pub(crate) fn check(
        self,
        value: Option<&Value>,
        owner: &str,
        name: &str,
        version: &str,
    ) -> Result<(), String> {
        self.check_at(value, Place { owner, path: name, version })
    }

    fn check_at(self, value: Option<&Value>, place: Place<'_>) -> Result<(), String> {
        let value = match value {
            None | Some(Value::Null) => return Ok(()),
            Some(value) => value,
        };
        let version = place.version;
        match (self, value) {
            (FieldType::Bool, Value::Bool(_)) | (FieldType::Text, Value::String(_)) => Ok(()),
            (FieldType::Texts, Value::Array(items)) => {
                items.iter().try_for_each(|item| FieldType::Text.check_at(Some(item), place))
            }
            (FieldType::TextMap, Value::Object(members)) => {
                members.values().try_for_each(|value| FieldType::Text.check_at(Some(value), place))
            }
            (FieldType::TextsMap(list), Value::Object(members)) => {
                members.values().try_for_each(|value| match value {
                    Value::Null | Value::Array(_) => FieldType::Texts.check_at(Some(value), place),
                    other => Err(place.wrong(other, &go_list(version, list))),
                })
            }
            (FieldType::Bytes, Value::String(text)) => base64::decode(text).map(drop),
            (FieldType::Objects(owner, fields), Value::Array(items)) => {
                items.iter().try_for_each(|item| FieldType::Object(owner, fields).check_at(Some(item), place))
            }
            (FieldType::Object(owner, fields), Value::Object(_)) => {
                fields.iter().try_for_each(|(name, field)| {
                    let path = format!("{}.{name}", place.path);
                    field.check_at(value.get(*name), Place { owner, path: &path, version })
                })
            }
            (FieldType::Bool, other) => Err(place.wrong(other, "bool")),
            (FieldType::Text, other) => Err(place.wrong(other, "string")),
            (FieldType::Texts, other) => Err(place.wrong(other, "[]string")),
            (FieldType::TextMap, other) => Err(place.wrong(other, "map[string]string")),
            (FieldType::TextsMap(list), other) => {
                Err(place.wrong(other, &format!("map[string]{}", go_list(version, list))))
            }
            (FieldType::Bytes, other) => Err(place.wrong(other, "[]uint8")),
            (FieldType::Objects(name, _), other) => Err(place.wrong(other, &format!("[]{version}.{name}"))),
            (FieldType::Object(name, _), other) => Err(place.wrong(other, &format!("{version}.{name}"))),
        }
    }
}

/// The Go type of a list of strings with this name in the package `version`.
fn go_list(version: &str, name: &str) -> String {
    match name {
        "" => "[]string".to_owned(),
        name => format!("{version}.{name}"),
    }
}

impl Place<'_> {
    fn wrong(self, found: &Value, wanted: &str) -> String {
        let Place { owner, path, .. } = self;
        let found = go_json_type(found);
        format!("json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {wanted}")
    }
}
